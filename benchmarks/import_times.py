"""What warpbook adds to the start of a server or a notebook, beside another checkout.

    python -m benchmarks.import_times FOLDER [--pairs N]

FOLDER is another checkout's, such as a worktree of an earlier commit; both are imported
by this environment. Each figure is of a fresh process in which Jupyter's part is loaded
already. CPU time, because others may use the machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import describe_machine

ROOT = Path(__file__).resolve().parent.parent

_TIMED = """
import time
{before}
begin_s = time.process_time()
{timed}
print(time.process_time() - begin_s)
"""
#: what is loaded before, and what is timed
CASES = {
    "import warpbook.server.app": ("import jupyter_server.serverapp", None),
    "%load_ext warpbook": (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()",
        "shell.run_line_magic('load_ext', 'warpbook')",
    ),
}


def main() -> None:
    """Time both checkouts in turns and print the table."""
    parser = argparse.ArgumentParser(description="Time imports of two checkouts.")
    parser.add_argument("other", type=Path, metavar="FOLDER")
    parser.add_argument("--pairs", type=int, default=15)
    options = parser.parse_args()
    print(describe_machine(), "\n")
    print("| what | this checkout, ms | the other, ms | this / the other |")
    print("| --- | --- | --- | --- |")
    for name, (before, timed) in CASES.items():
        code = _TIMED.format(before=before, timed=timed or name)
        # the first pair writes the compiled files
        pairs = [
            (_seconds(ROOT, code), _seconds(options.other.resolve(), code))
            for _ in range(options.pairs + 1)
        ][1:]
        ours, others = ([1000 * it for it in side] for side in zip(*pairs, strict=True))
        ratios = [ours_s / other_s for ours_s, other_s in pairs]
        row = (_spread(ours, 0), _spread(others, 0), _spread(ratios, 2))
        print(f"| `{name}` | {' | '.join(row)} |")


def _seconds(checkout: Path, code: str) -> float:
    """Return the CPU seconds that a fresh process prints."""
    folders = [str(checkout / name) for name in ("extension", "labs", "monitors")]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        cwd=checkout,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def _spread(values: Sequence[float], digits: int) -> str:
    """Return the median, with the lowest and the highest."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {most:.{digits}f})"


if __name__ == "__main__":
    main()
