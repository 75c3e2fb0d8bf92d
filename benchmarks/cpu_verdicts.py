"""Profiles cells without a GPU several times, and holds verdicts to an expert's.

`python -m benchmarks.cpu_verdicts [--times 6] [--traces FOLDER]` prints a table for
`docs/evidence/`; with a folder, each cell's last profile is saved there as a trace.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import platform
import re
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import torch

from tests.profiler.trace.cpu_cells import CELLS, Cell
from warpbook_monitors.cores import usable_cores
from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.verdict.analysis import analyse

#: names the person's machine
_HOST = re.compile(rb'"(host_name|traceName|trace_id)": "[^"]*"')


def main() -> None:
    """Profile every cell, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--traces", type=Path)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, Python {platform.python_version()}, ", end="")
    print(f"{usable_cores()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| cell | an expert says | profiles that say it | change named | in line |")
    print("| --- | --- | --- | --- | --- |")
    right = same = 0
    for name, cell in CELLS.items():
        profiles = [_profile(name, cell, options.traces) for _ in range(options.times)]
        kinds = Counter(one.verdict.kind for one in profiles if one.verdict)
        hits = sum(kinds[kind] for kind in cell.kinds)
        named = sum(
            any(change.name in cell.changes for change in one.changes[:1])
            for one in profiles
        )
        queued = max(one.cpu.queued_share for one in profiles if one.cpu)
        others = {
            kind: count for kind, count in kinds.items() if kind not in cell.kinds
        }
        text = ", ".join(f"{kind} {count}" for kind, count in others.items())
        print(
            f"| {name} | {' or '.join(cell.kinds)} | {hits} of {options.times}"
            f"{f' ({text})' if text else ''} | {named} of {options.times} | "
            f"up to {queued:.0%} |"
        )
        right += hits == options.times
        same += len(kinds) == 1
    print(f"\nAll profiles as the expert: {right} of {len(CELLS)} cells; ", end="")
    print(f"all profiles the same: {same} of {len(CELLS)}.")


def _profile(name: str, cell: Cell, folder: Path | None) -> CellProfile:
    torch.set_num_threads(cell.threads)
    code = cell.make()
    with redirect_stdout(io.StringIO()):
        code()
        capture = Capture()
        capture.start()
        capture.code_begins()
        code()
        events, run = capture.stop()
    if folder is not None:
        path = folder / f"{name}.json"
        capture.save(str(path))
        text = _HOST.sub(rb'"\1": ""', path.read_bytes())
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        path.unlink()
    return analyse(events, run)


if __name__ == "__main__":
    main()
