"""How long a check on host code takes without a GPU, beside an older state in turns.

    python benchmarks/host_check.py [--repeats 7] [--write FILE]

Each side is a process that checks the reference of a lab, all its cases, whenever it is
told to: this state, with PyTorch itself in a process that stays warm, and the last one
that had a second PyTorch on NumPy (`BEFORE`), taken from git into a folder of its own.
The first check is listed apart: it starts the warm process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.report import ask, spread, tell  # noqa: E402

#: the last commit whose host labs recorded with a stand-in on NumPy
BEFORE = "fb47cb8"
LABS = (
    "fix-the-stream",
    "host-device-copies",
    "copy-compute-overlap",
    "cuda-graphs",
    "zero-copy",
    "convolution-settings",
    "fix-the-trace",
    "mixed-precision",
    "fp8-linear",
)
_SIDE = """
import sys, time
from pathlib import Path
from warpbook_labs import drawing, loader
from warpbook_labs.engines.simulated.checking import check_host
from warpbook_labs.sandbox.limits import Limits

labs = loader.load_all()
for name in sys.stdin:
    lab = labs[name.strip()]
    cases = [*drawing.public_cases(lab.lab), *drawing.hidden_cases(lab.lab, 7)]
    source = (Path(lab.folder) / "reference.py").read_text(encoding="utf-8")
    begun = time.perf_counter()
    result = check_host(lab, source, cases, Limits())
    took = time.perf_counter() - begun
    assert result.status == "passed", result.message
    print(took, flush=True)
"""


class Side:
    """One checkout of the project, which runs checks on request."""

    def __init__(self, root: Path) -> None:
        """Start it."""
        path = os.pathsep.join(str(root / name) for name in ("labs", "monitors"))
        self._child = subprocess.Popen(
            [sys.executable, "-c", _SIDE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            cwd="/",
            text=True,
        )

    def check_s(self, lab: str) -> float:
        """Check a lab's reference; give how long that took."""
        assert self._child.stdin is not None and self._child.stdout is not None
        print(lab, file=self._child.stdin, flush=True)
        told = self._child.stdout.readline()
        if not told:
            raise SystemExit(f"{lab} was not checked.")
        return float(told)

    def end(self) -> None:
        """End it."""
        self._child.communicate()


def main() -> None:
    """Measure in turns, and print the table."""
    options = ask(__doc__, repeats=7)
    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "-C", str(ROOT), "archive", BEFORE, "labs", "monitors"]
        held = subprocess.run(archive, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(held)) as tar:
            tar.extractall(folder, filter="data")
        sides = Side(Path(folder)), Side(ROOT)
        first = [side.check_s(LABS[0]) for side in sides]
        lines = [
            f"The first check of a process: {first[0]:.2f} s before, {first[1]:.2f} s "
            "now, with what stays warm.",
            "",
            "| lab | before, s | now, s | times before |",
            "|---|---|---|---|",
        ]
        for lab in LABS:
            took: tuple[list[float], ...] = ([], [])
            for _ in range(options.repeats + 1):
                for side, times in zip(sides, took, strict=True):
                    # the first of each lab loads its Python
                    times.append(side.check_s(lab))
            took = tuple(times[1:] for times in took)
            before, now = took
            ratio = statistics.median(now) / statistics.median(before)
            lines.append(
                f"| {lab} | {spread(before, 2)} | {spread(now, 2)} | {ratio:.2f} |"
            )
            print(lines[-1], flush=True)
        for side in sides:
            side.end()
    tell(options, "Checks on host code without a GPU", "\n".join(lines))


if __name__ == "__main__":
    main()
