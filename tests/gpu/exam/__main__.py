"""Run the exam on a real GPU.

    python -m tests.gpu.exam [--only NAME ...] [--seconds 540] [--profiles 6]
        [--json OUT] [--traces FOLDER] [--apply]

Cells that are in the file of `--json` are not run again, so several calls complete it;
those named with `--only` are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.gpu.exam.judging import judge
from tests.gpu.exam.loading import Cell, chosen_cells, load_cells
from tests.gpu.exam.results import Results, read_results, write_results
from tests.gpu.exam.running import Kernels, run_cell
from tests.gpu.exam.table import line, table

_ROOT = Path(__file__).parents[3]


def run_exam(
    cells: Sequence[Cell],
    results: Results,
    *,
    seconds: float = float("inf"),
    profiles: int = 6,
    json: Path | None = None,
    traces: Path | None = None,
    apply: bool = True,
) -> None:
    """Run the cells that have no result yet, and add theirs.

    Args:
        cells: what to run.
        results: what is known, and grows.
        seconds: no cell begins later.
        profiles: how often each cell is profiled.
        json: a file that is written after each cell.
        traces: a folder for the trace of each cell's first profile.
        apply: changes are applied to each cell, too, some seconds each.
    """
    until_s = time.monotonic() + seconds
    if traces is not None:
        traces.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        kernels = Kernels(stack)
        for cell in cells:
            if cell.name in results:
                continue
            if time.monotonic() > until_s:
                print("The time is over: call it again for the rest.", flush=True)
                return
            result = run_cell(kernels, cell, profiles, traces, apply)
            results[cell.name] = result
            write_results(json, results)
            print(line(cell, result), flush=True)


def _find_packages() -> None:
    """Have kernels find the packages, and no server of somebody else."""
    roots = [str(_ROOT / root) for root in ("extension", "labs", "monitors")]
    paths = [*roots, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ.pop("WARPBOOK_INGEST_URL", None)


def main(arguments: Sequence[str]) -> int:
    """Run the command; 1 if an aim is missed by the cells that ran."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.exam")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--profiles", type=int, default=6)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--apply", action="store_true")
    options = parser.parse_args(arguments)
    cells = load_cells()
    try:
        chosen = chosen_cells(cells, options.only)
    except ValueError as error:
        parser.error(str(error))
    results = read_results(options.json)
    for name in options.only:
        results.pop(name, None)
    _find_packages()
    run_exam(
        chosen,
        results,
        seconds=options.seconds,
        profiles=options.profiles,
        json=options.json,
        traces=None if options.traces is None else options.traces.resolve(),
        apply=options.apply,
    )
    criteria = judge(cells, results)
    print(table(cells, results, criteria))
    return int(not all(criterion.holds for criterion in criteria))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
