"""Products on tensor cores: sums that need FP32, and codes in int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.lab_checks import check
from warpbook_labs.cases.bounds import beyond_bounds, matrix_instructions
from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.compiler.programs import job_of
from warpbook_labs.course.authoring import new_lab
from warpbook_labs.course.session import find
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load
from warpbook_labs.lab.spec import Counted
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.findings import Counts, HostCounts
from warpbook_labs.sandbox import parent

LAB = "tensor-cores"


def checked(lab: LoadedLab, source: str, case: DrawnCase) -> CaseResult:
    [result] = check(lab, source, [case]).cases
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
    assert "Counted: 0 matrix instructions, at least 1. Line " in wrong.message
    assert wrong.message.endswith("without them.")


def test_a_dot_that_is_never_run_multiplies_nothing(lab: LoadedLab) -> None:
    case = public_cases(lab.lab)[1]
    wrong = checked(lab, lab.wrong["a_dot_that_never_runs.py"], case)
    # every element is right, and the program has what tensor cores do
    assert wrong.wrong is None and wrong.counts is not None
    assert wrong.counts.matrix_instructions >= 1
    least = "at least 116,550."
    words = "Counted: 0 multiplications by tl.dot for tensor cores"
    assert f"{words}, {least}" in wrong.message
    # where the products are made instead
    assert wrong.message.endswith("Line 19 multiplies without them.")


def test_each_dot_that_is_run_is_counted_as_what_it_multiplies(lab: LoadedLab) -> None:
    # tiles of 32 x 32 with 64 of k: 2 x 3 of them, each with one step
    case = public_cases(lab.lab)[1]
    right = checked(lab, lab.correct["one_tile_each.py"], case)
    assert right.passed and right.counts is not None
    assert right.counts.dot_multiplications == 2 * 3 * 32 * 32 * 64
    # no tensor core multiplies FP32 as it is
    exact = checked(lab, lab.wrong["asks_for_every_bit.py"], case)
    assert exact.counts is not None and exact.counts.dot_multiplications == 0
    rounded = lab.wrong["asks_for_every_bit.py"].replace('"ieee"', '"tf32"')
    counts = checked(lab, rounded, case).counts
    assert counts is not None and counts.dot_multiplications == 2 * 3 * 32 * 32 * 64


@pytest.mark.parametrize(
    "name", ["sums_in_half_precision.py", "each_tile_in_half_precision.py"]
)
def test_a_sum_in_fp16_leaves_what_fp16_holds(lab: LoadedLab, name: str) -> None:
    case = next(
        public_case
        for public_case in public_cases(lab.lab)
        if public_case.values == "saturating"
    )
    wrong = checked(lab, lab.wrong[name], case).wrong
    # infinity stays infinite, or meets one of the other sign
    assert wrong is not None and wrong.got in ("inf", "-inf", "nan")


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
    job = job_of(Submission(lab, lab.reference), "sm_90", sizes)
    result = parent.run(job).result
    assert isinstance(result, Compiled)
    assert result.ptx.count(".visible .entry") == 2
    counted = matrix_instructions(result.ptx, ["matmul"])
    assert 0 < counted < result.ptx.count("wgmma.mma_async")
    assert matrix_instructions(result.ptx, ["matmul", "matmul"]) == counted
    assert matrix_instructions(result.ptx, ["other"]) == 0


def test_bounds_are_told_from_both_sides() -> None:
    counts = Counts(global_sectors=10)
    few = Counted("global_sectors", "Read more.", least="n + 1")
    many = Counted("global_sectors", "Read less.", most="n - 1")
    assert beyond_bounds([few], counts, {"n": 9}).words == ""
    sentence = "Read more. Counted: 10 global sectors, at least 11."
    assert beyond_bounds([few, many], counts, {"n": 10}).words == sentence
    sentence = "Read less. Counted: 10 global sectors, at most 9."
    assert beyond_bounds([many, few], counts, {"n": 10}).words == sentence


def test_one_is_told_in_the_singular() -> None:
    counts = HostCounts(synchronizations=1, h2d_bytes=1, total_ns=1, copies=1)
    for count, words in (
        ("synchronizations", "1 host synchronization"),
        ("h2d_bytes", "1 byte over the link to the GPU"),
        ("total_ns", "1 ns of simulated time"),
        ("copies", "1 copy"),
    ):
        counted = Counted(count, "Less.", most="0")
        sentence = beyond_bounds([counted], counts, {}).words
        assert sentence == f"Less. Counted: {words}, at most 0."


def test_what_tl_dot_multiplied_is_no_bound_for_cuda(tmp_path: Path) -> None:
    folder = new_lab("my-lab", tmp_path)
    file = folder / "lab.toml"
    counted = '[[counted]]\ncount = "dot_multiplications"\nleast = "n"\nabout = "Do."\n'
    file.write_text(f"{file.read_text()}\n{counted}")
    with pytest.raises(BadLab, match="dot_multiplications: only of labs in `triton`"):
        load(folder)


def test_a_count_without_a_bound_is_refused(lab: LoadedLab, tmp_path: Path) -> None:
    folder = tmp_path / "tensor_cores"
    folder.mkdir()
    for path in lab.folder.rglob("*"):
        if path.is_file():
            copy = folder / path.relative_to(lab.folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    file = folder / "lab.toml"
    text = file.read_text()
    file.write_text(text.replace('least = "1"\n', ""))
    with pytest.raises(BadLab, match="counted.matrix_instructions"):
        load(folder)
    file.write_text(text.replace("matrix_instructions", "bank_conflicts"))
    with pytest.raises(BadLab, match=r"of Triton, global_\*, matrix_instructions, dot"):
        load(folder)


def test_the_limit_is_that_of_what_is_multiplied(lab: LoadedLab) -> None:
    assert lab.lab.work.dtype == "float16"
    outputs = [
        parameter for parameter in lab.lab.parameters if parameter.kind == "output"
    ]
    assert [output.dtype for output in outputs] == ["float32"]


@pytest.fixture(scope="module")
def int8() -> LoadedLab:
    return find("int8-linear")


def drawn(lab: LoadedLab, values: str, seed: int = 1) -> tuple[Any, Any, Any]:
    sizes = {"tokens": 24, "features": 96, "outputs": 32}
    given = lab.cases.inputs(sizes, values, np.random.default_rng(seed))
    right = lab.cases.expected(given, sizes)
    return given, right, lab.cases.tolerance(given, sizes, right)


@pytest.mark.parametrize("values", ["random", "outliers", "small_rows", "huge_row"])
def test_codes_are_right_by_the_words_of_the_lab(int8: LoadedLab, values: str) -> None:
    given, right, allowed = drawn(int8, values)
    x = given["x"].astype(np.float64)
    large = [
        column for column in range(96) if abs(x[:, column]).max() >= given["threshold"]
    ]
    assert bool(large) == (values in ("outliers", "huge_row"))
    for row, codes, scale, either in zip(
        x, right["codes"], right["scales"], allowed["codes"], strict=True
    ):
        others = [abs(number) for place, number in enumerate(row) if place not in large]
        assert scale == max(others, default=0)
        for place, code in enumerate(codes):
            exact = 0.0 if place in large or not scale else row[place] * 127 / scale
            assert abs(code - exact) <= 0.5
            assert either[place] == (abs(abs(exact) % 1 - 0.5) < 1e-4)


def test_either_code_is_right_where_a_number_lies_in_the_middle(
    int8: LoadedLab,
) -> None:
    sizes = {"tokens": 1, "features": 4, "outputs": 1}
    given = {
        "x": np.array([[2.0, 1.0, 0.5, -2.0]], np.float16),
        "weight": np.array([[100, 1, 1, 1]], np.int8),
        "weight_scales": np.array([127], np.float32),
        "threshold": 6.0,
    }
    right = int8.cases.expected(given, sizes)
    allowed = int8.cases.tolerance(given, sizes, right)
    # 1.0 is 63.5, and 0.5 is 31.75
    assert right["codes"].tolist() == [[127, 64, 32, -127]]
    assert allowed["codes"].tolist() == [[0, 1, 0, 0]]
    # a step of 2 / 127 more or less
    assert allowed["out"][0, 0] > 2 / 127


def test_a_result_near_zero_may_be_rounded_with_the_other_code_in_it(
    int8: LoadedLab,
) -> None:
    sizes = {"tokens": 1, "features": 3, "outputs": 256}
    given = {
        "x": np.array([[2.0, 1.0, -2.0]], np.float16),
        # 127 * -64 + 64 * 127 is nothing, and with 63, which is as right, it is not
        "weight": np.full((256, 3), [-64, 127, 0], np.int8),
        "weight_scales": np.linspace(0.01, 1, 256, dtype=np.float32),
        "threshold": 6.0,
    }
    right = int8.cases.expected(given, sizes)
    assert right["codes"].tolist() == [[127, 64, -127]] and not right["out"].any()
    other = -2 / 127 * given["weight_scales"].astype(np.float64)
    rounded = other.astype(np.float16).astype(np.float64)
    assert (np.abs(rounded) > np.abs(other)).any()
    allowed = int8.cases.tolerance(given, sizes, right)["out"]
    assert (np.abs(rounded) <= allowed).all()
    # and not what a second code would add
    assert (np.abs(2 * rounded) > allowed).all()


def test_outliers_among_the_codes_cost_what_the_lab_says_that_they_do(
    int8: LoadedLab,
) -> None:
    given, right, _ = drawn(int8, "outliers")
    x = given["x"].astype(np.float64)
    w = given["weight"] * given["weight_scales"].astype(np.float64)[:, None] / 127
    scales = np.abs(x).max(axis=1, keepdims=True)
    all_in_codes = np.rint(x * 127 / scales) * scales / 127 @ w.T
    off = [
        np.linalg.norm(product - x @ w.T) for product in (right["out"], all_in_codes)
    ]
    assert off[1] > 2 * off[0]


def test_the_baseline_gives_what_is_asked_of_the_inputs_that_are_timed(
    int8: LoadedLab,
) -> None:
    speed = int8.lab.speed
    assert speed is not None
    given, right, allowed = drawn(int8, speed.values[0])
    module: dict[str, Any] = {}
    source = (int8.private or int8.folder) / speed.baseline
    exec(source.read_text(), module)
    held = {
        name: torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }
    outputs = {
        "codes": torch.zeros(24, 96, dtype=torch.int8),
        "scales": torch.zeros(24),
        "out": torch.zeros(24, 32, dtype=torch.float16),
    }
    module["run"](None, **held, **outputs)
    for name, output in outputs.items():
        # of timed calls twice the largest is allowed
        most = 2 * float(np.max(allowed[name]))
        assert abs(output.numpy().astype(float) - right[name]).max() <= most
