"""How long a check takes without a GPU, beside an older state in turns.

    python benchmarks/check_times.py [--repeats 7] [--write FILE]

Each side is a process that checks the reference of a lab whenever it is told to: with
one small case, which is what every check takes at least, or with all cases that the lab
shows and that a submission gets. The first check of a process is listed apart, since it
starts what stays warm. The older state (`BEFORE`) is taken from git into a folder of
its own; it started processes for each check of kernels. `warpbook labs list` is timed
as a whole command.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from benchmarks.report import ask, spread, tell

#: the last commit in which each check of kernels started processes of its own
BEFORE = "9de9b35"
#: of one case
SMALL = ("vector-add", "thread-and-block", "fix-the-stream")
#: of all cases
WHOLE = (
    "vector-add",
    "matmul",
    "reduction-and-scan",
    "thread-and-block",
    "host-device-copies",
    "cuda-graphs",
    "mixed-precision",
)
_SIDE = """
import sys, time
from pathlib import Path
try:
    from warpbook_labs.cases import sampling
    from warpbook_labs.grading.table import case_grader_of
    from warpbook_labs.lab import loader
    from warpbook_labs.lab.loaded import Submission
    from warpbook_labs.sandbox.work import Limits

    def check(lab, source, cases, limits):
        submission = Submission(lab, source, limits=limits)
        return case_grader_of(lab.lab).engines.check(submission, cases)
except ImportError:
    from warpbook_labs import drawing as sampling, loader
    from warpbook_labs.checking import check
    from warpbook_labs.jail.limits import Limits

labs = loader.load_all()
for line in sys.stdin:
    name, count = line.split()
    lab = labs[name]
    cases = [*sampling.public_cases(lab.lab), *sampling.hidden_cases(lab.lab, 7)]
    cases = cases[: int(count)]
    begin = time.perf_counter()
    result = check(lab, lab.reference, cases, Limits(processor_s=100))
    took = time.perf_counter() - begin
    assert result.status == "passed", result.message
    print(took, flush=True)
"""
_LIST = "import sys; from warpbook.cli.main import main; sys.exit(main())"
_ALL = 999


class Side:
    """One checkout of the project, which runs checks on request."""

    def __init__(self, root: Path) -> None:
        """Start it."""
        folders = ("extension", "labs", "monitors")
        path = os.pathsep.join(str(root / name) for name in folders)
        self._environment = {**os.environ, "PYTHONPATH": path}
        self._child = subprocess.Popen(
            [sys.executable, "-c", _SIDE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            cwd="/",
            text=True,
        )

    def check_s(self, lab: str, cases: int = _ALL) -> float:
        """Check a lab's reference with so many cases; give how long that took."""
        assert self._child.stdin is not None and self._child.stdout is not None
        print(lab, cases, file=self._child.stdin, flush=True)
        answer = self._child.stdout.readline()
        if not answer:
            raise SystemExit(f"{lab} was not checked.")
        return float(answer)

    def list_s(self) -> float:
        """Time `warpbook labs list` as a whole."""
        begin_s = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", _LIST, "labs", "list"],
            check=True,
            capture_output=True,
            env=self._environment,
            cwd="/",
        )
        return time.perf_counter() - begin_s

    def end(self) -> None:
        """End it."""
        self._child.communicate()


def main() -> None:
    """Measure in turns, and print the table."""
    options = ask(__doc__, repeats=7)
    lines = ["| what | before, s | now, s | times before |", "|---|---|---|---|"]

    def add(what: str, before: list[float], now: list[float]) -> None:
        ratio = statistics.median(now) / statistics.median(before)
        cells = (what, spread(before, 2), spread(now, 2), f"{ratio:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        archive = ["git", "-C", str(ROOT), "archive", BEFORE]
        archive += ["extension", "labs", "monitors"]
        content = subprocess.run(archive, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(content)) as tar:
            tar.extractall(folder, filter="data")
        sides = Side(Path(folder)), Side(ROOT)
        listed = [[side.list_s() for side in sides] for _ in range(options.repeats)]
        add("`warpbook labs list`", *map(list, zip(*listed, strict=True)))
        for lab, cases in [(lab, 1) for lab in SMALL] + [(lab, _ALL) for lab in WHOLE]:
            first = [side.check_s(lab, cases) for side in sides]
            if cases == 1:
                add(f"{lab}, one case, first", [first[0]], [first[1]])
            taken = [
                [side.check_s(lab, cases) for side in sides]
                for _ in range(options.repeats)
            ]
            what = f"{lab}, {'one case' if cases == 1 else 'all cases'}"
            add(what, *map(list, zip(*taken, strict=True)))
        for side in sides:
            side.end()
    lines += ["", f"Median (lowest to highest) of {options.repeats}, in turns."]
    tell(options, "Checks without a GPU", "\n".join(lines))


if __name__ == "__main__":
    main()
