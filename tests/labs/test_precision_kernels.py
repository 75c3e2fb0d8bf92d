"""What a learner is told of products on tensor cores, and of sums that need FP32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpbook_labs.checking import check
from warpbook_labs.counting import beyond_bounds, matrix_instructions
from warpbook_labs.device.programs import job_of
from warpbook_labs.drawing import DrawnCase, public_cases
from warpbook_labs.jail import jobs, parent
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import BadLab, LoadedLab, load
from warpbook_labs.ptx.findings import Counts
from warpbook_labs.results import CaseResult
from warpbook_labs.session import find
from warpbook_labs.spec import Counted


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("tensor-cores")


def checked(lab: LoadedLab, source: str, case: DrawnCase) -> CaseResult:
    [result] = check(lab, source, [case], Limits()).cases
    return result


def test_how_many_instructions_for_tensor_cores_a_program_has_is_told(
    lab: LoadedLab,
) -> None:
    case = public_cases(lab.lab)[0]
    right = checked(lab, lab.reference, case)
    assert right.passed and right.counts is not None
    assert right.counts.matrix_instructions >= 1
    wrong = checked(lab, lab.wrong["without_tensor_cores.py"], case)
    # every element is right
    assert wrong.wrong is None and not wrong.passed
    assert wrong.message.endswith("0 were counted, 1 are asked for.")


@pytest.mark.parametrize(
    "name", ["sums_in_half_precision.py", "each_tile_in_half_precision.py"]
)
def test_a_sum_in_fp16_leaves_what_fp16_holds(lab: LoadedLab, name: str) -> None:
    case = next(each for each in public_cases(lab.lab) if each.values == "saturating")
    told = checked(lab, lab.wrong[name], case).wrong
    # infinity stays infinite, or meets one of the other sign
    assert told is not None and told.got in ("inf", "-inf", "nan")


@pytest.mark.parametrize("values", ["whole", "saturating", "cancelling"])
def test_whole_numbers_are_asked_for_exactly_however_long_the_sum(
    lab: LoadedLab, values: str
) -> None:
    sizes = {"m": 5, "n": 7, "k": lab.lab.hidden.sizes["k"].device_most or 0}
    given = lab.cases.inputs(sizes, values, np.random.default_rng(3))
    right = lab.cases.expected(given, sizes)
    assert lab.cases.tolerance(given, sizes, right)["c"] == 0.0
    # added up in FP32 in any order, each sum is the same
    a, b = given["a"].astype(np.float32), given["b"].astype(np.float32)
    for order in (slice(None), slice(None, None, -1)):
        total = np.zeros((5, 7), np.float32)
        for part in np.arange(sizes["k"])[order]:
            total += a[:, part, None] * b[None, part, :]
        np.testing.assert_array_equal(total, right["c"])


def test_of_kinds_of_numbers_and_of_kernels_each_is_counted_once(
    lab: LoadedLab,
) -> None:
    sizes = [{"m": 64, "n": 64, "k": 64}, {"m": 45, "n": 70, "k": 37}]
    job = job_of(lab, lab.reference, "sm_90", sizes)
    result = parent.run(job).result
    assert isinstance(result, jobs.Compiled)
    assert result.ptx.count(".visible .entry") == 2
    counted = matrix_instructions(result.ptx, ["matmul"])
    assert 0 < counted < result.ptx.count("wgmma.mma_async")
    assert matrix_instructions(result.ptx, ["matmul", "matmul"]) == counted
    assert matrix_instructions(result.ptx, ["other"]) == 0


def test_bounds_are_told_from_both_sides() -> None:
    counts = Counts(global_sectors=10)
    few = Counted("global_sectors", "Read more.", least="n + 1")
    many = Counted("global_sectors", "Read less.", most="n - 1")
    assert beyond_bounds([few], counts, {"n": 9}) == ""
    told = "Read more. 10 were counted, 11 are asked for."
    assert beyond_bounds([few, many], counts, {"n": 10}) == told
    told = "Read less. 10 were counted, 9 are allowed."
    assert beyond_bounds([many, few], counts, {"n": 10}) == told


def test_a_count_without_a_bound_is_refused(lab: LoadedLab, tmp_path: Path) -> None:
    folder = tmp_path / "tensor_cores"
    folder.mkdir()
    for each in lab.folder.rglob("*"):
        if each.is_file():
            copy = folder / each.relative_to(lab.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(each.read_bytes())
    file = folder / "lab.toml"
    text = file.read_text()
    file.write_text(text.replace('least = "1"\n', ""))
    with pytest.raises(BadLab, match="counted.matrix_instructions"):
        load(folder)
    file.write_text(text.replace("matrix_instructions", "bank_conflicts"))
    with pytest.raises(BadLab, match="of Triton, matrix_instructions and"):
        load(folder)


def test_the_limit_is_that_of_what_is_multiplied(lab: LoadedLab) -> None:
    assert lab.lab.work.dtype == "float16"
    outputs = [each for each in lab.lab.parameters if each.kind == "output"]
    assert [each.dtype for each in outputs] == ["float32"]
