"""Kernels run without a GPU: our interpreter of PTX beside numba's simulator.

    python benchmarks/interpreter.py [--repeats 3] [--write docs/benchmarks.md]

The same kernels with the same grids and blocks on the same numbers; both results are
checked. Each run is in a fresh process, in turn. Ours is timed from the CUDA C++ source
to the result, with NVRTC's compilation; numba's without its imports. Ours also watches
for races, bounds and reads of what nobody wrote, and counts; numba's does none of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "labs")]

from benchmarks.report import ask, spread, tell

PEER = ("numba==0.68.1", "numpy<2.5")
KERNELS = {
    "matmul 33": "matmul in tiles of 16 x 16, 33 x 33",
    "matmul 64": "the same, 64 x 64",
    "transpose 128": "transpose in tiles of 32 x 32, 128 x 128",
    "sum 4096": "sum of 4,096 numbers, a tree in each of 16 blocks",
}
_PATIENCE_S = 600


def peer_python() -> Path:
    """Give the interpreter of numba's environment; the first time, set it up."""
    folder = ROOT / ".cache" / "bench-numba"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PEER], check=True)
    return python


def measure(contender: str) -> dict[str, float]:
    """Run every kernel once in a fresh process; give seconds by kernel."""
    python = Path(sys.executable) if contender == "warpbook" else peer_python()
    child = Path(__file__).with_name(f"interpreter_{contender}.py")
    done = subprocess.run(
        [python, child],
        check=True,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "NUMBA_ENABLE_CUDASIM": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "labs")]),
        },
        timeout=_PATIENCE_S,
    )
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def main() -> None:
    """Measure in turn, and print the table."""
    options = ask(__doc__, repeats=3)
    runs: dict[str, list[dict[str, float]]] = {"warpbook": [], "numba": []}
    for _ in range(options.repeats):
        for contender, measured in runs.items():
            measured.append(measure(contender))
            print(contender, measured[-1], flush=True)
    lines = [
        "| kernel | warpbook, s | numba's simulator, s | times warpbook's |",
        "|---|---|---|---|",
    ]
    for name, words in KERNELS.items():
        ours, theirs = (
            [run[name] for run in of_contender] for of_contender in runs.values()
        )
        ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
        cells = [spread(ours, 2), spread(theirs, 1), spread(ratios, 0)]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    intro = f"Median (lowest to highest) of {options.repeats} runs; {PEER[0]}."
    text = "\n".join([intro, "", *lines])
    tell(options, "Kernels without a GPU, beside numba's simulator", text)


if __name__ == "__main__":
    main()
