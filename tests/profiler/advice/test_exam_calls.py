"""Calls of the exam's command, one after the other; cells run where there is no GPU."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.exam import __main__ as exam
from tests.gpu.exam import running
from tests.gpu.exam.agreement import differences, outputs
from tests.gpu.exam.judging import judge
from tests.gpu.exam.loading import Cell
from tests.gpu.exam.results import (
    AdvisedChange,
    CellResult,
    Results,
    Times,
    read_results,
)
from tests.gpu.exam.running import Kernels, run_cell
from tests.gpu.exam.table import line
from tests.profiler.advice.test_exam_cells import profile_of, result_of
from warpbook_profiler.files.chrome import read_chrome_trace

ROOT = Path(__file__).parents[3]
#: what the helpers ask of a GPU, without one
NO_GPU = """
import torch
torch.set_num_threads(1)
for _name in ("synchronize", "empty_cache", "set_per_process_memory_fraction"):
    setattr(torch.cuda, _name, lambda *_: None)
torch.cuda.get_device_name = lambda: "no GPU"
"""


def cell(name: str, **fields: Any) -> Cell:
    given: dict[str, Any] = {
        "kinds": ("memory-bound",),
        "changes": ("fuse",),
        "expert": "torch.compile",
        "judged": "prediction",
        "setup": "x = torch.ones(1000, device=dev)\nruns = []",
        "slow": "runs.append(len(runs))\ny = x.sum()",
        "fast": "y = x.sum()",
    }
    return Cell(name=name, **(given | fields))


@pytest.fixture(scope="module")
def kernels() -> Iterator[Kernels]:
    """Give kernels in which cells run on the host."""
    roots = [str(ROOT / root) for root in ("extension", "labs", "monitors")]
    helpers = NO_GPU + running.HELPERS.replace('dev = "cuda"', 'dev = "cpu"')
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setenv("PYTHONPATH", os.pathsep.join(roots), prepend=os.pathsep)
        patch.delenv("WARPBOOK_INGEST_URL", raising=False)
        patch.setattr(running, "HELPERS", helpers)
        yield Kernels(stack)


def test_a_cell_is_timed_profiled_and_timed_again(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # on a busy machine so short a cell may be advised one, before which it is set up
    monkeypatch.setattr(running, "_edited", lambda *_: [])
    measured = run_cell(kernels, cell("sum"), profiles=3, traces=tmp_path)
    assert not measured.error
    assert measured.gpu == "no GPU"
    assert len(measured.profiles) == 3
    for times in (measured.before, measured.after, measured.fixed):
        assert times is not None
        assert 0 < times.least_ms <= times.median_ms <= times.most_ms
    with kernels.of(cell("sum")) as notebook:
        # 20 runs before and 10 for each round after; 3 profiles, and 3 and 1 executions
        # before two of them
        assert notebook.value("len(runs)") - 27 in (10, 20, 30, 40)
    events, run = read_chrome_trace(str(tmp_path / "sum.json.gz"))
    assert len(events)
    assert [path.name for path in tmp_path.iterdir()] == ["sum.json.gz"]


def test_nothing_of_a_cell_is_left_for_the_next_one(kernels: Kernels) -> None:
    first = cell("first", setup="x = torch.ones(8)\nruns, z = [], 1")
    second = cell("second", slow="assert 'z' not in globals()\ny = x.sum()")
    assert not run_cell(kernels, first, 1, None).error
    assert not run_cell(kernels, second, 1, None).error


def test_what_is_printed_beside_a_value_is_no_part_of_it(kernels: Kernels) -> None:
    with kernels.of(cell("noisy")) as notebook:
        notebook.run(
            "import warnings\ndef told(): warnings.warn('so'); return [1j.imag]"
        )
        assert notebook.value("[told(), 'a\\n']") == [[1.0], "a\n"]
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            notebook.value("1 / 0")


@pytest.mark.parametrize(
    ("setup", "source", "agrees", "differs"),
    [
        ("z = torch.tensor([1 + 2j])", "y = z", "y = z + 1e-6j", "y = z + 0.1j"),
        ("z = 1 + 2j", "y = z", "y = z + 1e-9", "y = z + 0.1j"),
        (
            "from typing import NamedTuple\n"
            "class Both(NamedTuple):\n    low: object\n    high: object\n"
            "z = torch.ones(2)",
            "y = Both(z, 3 * z)",
            "y = Both(z + 1e-6, 3 * z)",
            "y = Both(z, 3.1 * z)",
        ),
    ],
    ids=["complex", "complex number", "named tuple"],
)
def test_results_agree_by_all_that_they_hold(
    setup: str, source: str, agrees: str, differs: str
) -> None:
    def given(code: str) -> dict[str, Any]:
        names: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
        exec(setup, names)
        return outputs(code, names)

    with warnings.catch_warnings(action="error"):
        assert differences(given(source), given(agrees), "any", source) == []
        assert differences(given(source), given(differs), "any", source) == ["y"]


@pytest.mark.parametrize(
    ("edit", "differs"),
    [
        ("bins = (x / 1e-3).long() % 7", []),
        ("bins = (x * 1.001e3).long() % 7", ["bins"]),
    ],
)
def test_no_edit_comes_nearer_than_rounding_of_the_inputs(
    kernels: Kernels, edit: str, differs: list[str]
) -> None:
    binned = cell(
        "binned",
        setup="x = torch.linspace(0.1, 0.9, 30_000, device=dev)",
        slow="bins = (x * 1e3).long() % 7",
    )
    change = AdvisedChange("fuse", "predicted", "", code=edit)
    with kernels.of(binned) as notebook:
        assert list(running._edit(notebook, binned, change).differs) == differs


def test_what_was_measured_before_an_error_is_kept(kernels: Kernels) -> None:
    broken = cell("broken", fast="not_there()")
    measured = run_cell(kernels, broken, 1, None)
    assert "NameError" in measured.error
    assert len(measured.profiles) == 1
    assert measured.after is not None
    assert measured.fixed is None
    # the others go on in a kernel of their own
    assert not run_cell(kernels, cell("next"), 1, None).error


def test_a_cell_without_its_library_is_left_out(kernels: Kernels) -> None:
    missing = cell("missing", needs=("no_such_library",))
    measured = run_cell(kernels, missing, 1, None)
    assert measured.left_out == "no no_such_library here"
    assert "left out" in line(missing, measured)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the names of cells that are run; the third one is ended at a limit."""
    names: list[str] = []

    def run(kernels: Kernels, cell: Cell, *_: object) -> CellResult:
        names.append(cell.name)
        if len(names) == 3:
            raise KeyboardInterrupt
        return CellResult(name=cell.name, before=Times(2.0, 1.0, 3.0))

    monkeypatch.setattr(exam, "run_cell", run)
    return names


def test_a_call_that_is_ended_leaves_what_it_ran(
    ran: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "exam.json"
    cells = [cell(name) for name in "abc"]
    with pytest.raises(KeyboardInterrupt):
        exam.run_exam(cells, {}, json=path)
    assert [*read_results(path)] == ["a", "b"]
    exam.run_exam(cells, read_results(path), json=path)
    assert ran == ["a", "b", "c", "c"]
    assert [*read_results(path)] == ["a", "b", "c"]


def test_a_cell_that_is_named_is_run_again(
    ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exam, "load_cells", lambda: (cell("a"), cell("b")))
    monkeypatch.setattr(exam, "_find_packages", lambda: None)
    path = ["--json", str(tmp_path / "exam.json")]
    # an aim that nothing was measured of is missed
    assert exam.main(path) == 1
    assert exam.main(path) == 1
    assert ran == ["a", "b"]
    ran.clear()
    exam.main([*path, "--only", "b"])
    assert ran == ["b"]
    with pytest.raises(SystemExit):
        exam.main([*path, "--only", "nothing"])


def test_errors_of_bare_times_are_told_by_their_median_and_their_tail() -> None:
    cells = [cell(f"cell_{number}") for number in range(1, 11)]
    results: Results = {
        # 1 % to 10 % too long; later profiles know what was measured
        one.name: result_of(
            one.name,
            profile_of(bare_ms=(10 + number / 10, 9.0, 12.0)),
            profile_of(bare_ms=(99.0, 98.0, 100.0), basis="measured"),
        )
        for number, one in enumerate(cells, start=1)
    }
    criteria = {criterion.name: criterion for criterion in judge(cells, results)}
    median = criteria["bare time of GPU-bound cells, median error"]
    tail = criteria["bare time of GPU-bound cells, 90 % error"]
    assert median.value == pytest.approx(0.055)
    assert not median.holds
    assert tail.value == pytest.approx(0.091)
    assert tail.holds
