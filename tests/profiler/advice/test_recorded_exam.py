"""The exam's cells as a GPU ran them: traces with times measured beside them.

Each trace is that of a cell's first profile, before anything was known of its bare
time. `tests.gpu.exam` recorded them, and judges here as it does on a GPU.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest

from tests.gpu.exam.judging import Criterion, judge
from tests.gpu.exam.loading import Cell, load_cells
from tests.gpu.exam.results import CellResult, Results, Times
from tests.gpu.exam.running import profile_figures
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict.analysis import analyse

FOLDER = Path(__file__).parents[2] / "data" / "exam"
GPUS = sorted(path.name for path in FOLDER.iterdir())
CRITERIA = (
    "verdict kind right",
    "named change among the first 2",
    "predictions, median error",
    "predictions within 1.1 times",
    "predictions within 1.25 times",
    "ranges that hold",
    "bounds that hold",
    "no gain promised where there is none",
    "bare time of GPU-bound cells, median error",
    "bare time of GPU-bound cells, 90 % error",
)


@cache
def profiled(gpu: str, cell: Cell) -> CellProfile:
    events, run = read_chrome_trace(str(FOLDER / gpu / f"{cell.name}.json.gz"))
    return analyse(events, replace(run, source=cell.source))


@cache
def criteria_of(gpu: str) -> dict[str, Criterion]:
    times_ms = msgspec.json.decode(
        (FOLDER / gpu / "times_ms.json").read_bytes(),
        type=dict[str, dict[str, Times]],
    )
    cells = [cell for cell in load_cells() if cell.name in times_ms]
    assert len(cells) == len(times_ms) >= 30
    results: Results = {}
    for cell in cells:
        figures = {"profiler_ns": 0, "completeness": {}}
        figures = {**figures, **msgspec.to_builtins(profiled(gpu, cell))}
        figures["completeness"] = {}
        results[cell.name] = CellResult(
            name=cell.name,
            profiles=(profile_figures(figures),),
            **times_ms[cell.name],
        )
    return {criterion.name: criterion for criterion in judge(cells, results)}


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("gpu", GPUS)
def test_the_aim_is_reached(gpu: str, name: str) -> None:
    criterion = criteria_of(gpu)[name]
    assert criterion.holds, (criterion.value, criterion.basis, criterion.misses)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # of the cause: what else is done about it may take less
        ("pinned_copies", "Without this cause: 48.7 µs at best, instead"),
        ("bf16_large_product", "with the same dtype and bytes: 5.62 ms at best"),
        # no advice that helps with other causes of the same kind
        ("index_add_to_few_addresses", "Add to 512 copies of each row"),
    ],
)
def test_the_verdict_says_what_its_bound_is_of(name: str, words: str) -> None:
    events, run = read_chrome_trace(str(FOLDER / "h100" / f"{name}.json.gz"))
    assert words in analyse(events, run).verdict.sentence


def test_float32_gains_nothing_because_of_the_chip() -> None:
    path = FOLDER / "h100" / "fp64_products_by_accident.json.gz"
    change = analyse(*read_chrome_trace(str(path))).changes[0]
    assert change.name == "float32"
    assert "No gain" in change.sentence
    assert "multiplies float64 as fast as float32" in change.sentence


@pytest.mark.parametrize("gpu", GPUS)
def test_results_are_read_back_in_one_cell(gpu: str) -> None:
    """Others copy as often to the host: numbers, sizes of masks, what is printed."""
    advised = {
        cell.name
        for cell in load_cells()
        if (FOLDER / gpu / f"{cell.name}.json.gz").exists()
        for change in profiled(gpu, cell).changes
        if change.name in ("pinned-results", "stack-results")
    }
    assert advised == {"results_read_back_in_a_loop"}


def test_a_library_that_writes_no_operators_has_a_wider_range() -> None:
    path = FOLDER / "h100" / "jax_without_jit.json.gz"
    bare = analyse(*read_chrome_trace(str(path))).bare
    assert bare is not None and bare.low_ns < 0.65 * bare.high_ns
