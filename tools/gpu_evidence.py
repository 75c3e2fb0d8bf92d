"""Run the tests that need a GPU, and keep what they found in docs/evidence/.

    python tools/gpu_evidence.py [MODULE ...] [--two-gpus] [--minutes 9]
        [--logs FOLDER] [--commit HASH] [--write docs/evidence/profiling-h200.md]

Each module of tests/gpu runs in a pytest of its own, with an end; one that would begin
after the time is over is named and left for the next call. The page has a section for
each module: the result, the tables that it printed, and what failed. Sections of other
modules stay, so that several short calls fill one page. The logs have the whole output.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "gpu"
#: longer than any module takes
_MOST_S = 590
_SUMMARY = re.compile(r"=+ (.*(?:passed|failed|error|deselected).*) in ([\d.]+)s.*=+")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - (.*))?$", re.MULTILINE)
_MOST_REASON = 300


@dataclass(frozen=True)
class Outcome:
    """What one module came to."""

    module: str
    command: str
    output: str

    def section(self, when: str) -> str:
        """Write its part of the page."""
        summaries = _SUMMARY.findall(self.output)
        result = (
            f"{summaries[-1][0]} in {float(summaries[-1][1]):.0f} s"
            if summaries
            else "no end"
        )
        parts = [f"## {self.module}", f"{when}. `{self.command}`: {result}."]
        parts += tables(self.output)
        failed = [
            f"- `{name.rpartition('::')[2]}`: {plain(reason)}"
            for name, reason in _FAILED.findall(self.output)
        ]
        if failed:
            parts.append("Failed:\n\n" + "\n".join(failed))
        return "\n\n".join(parts)


def tables(output: str) -> list[str]:
    """Give the Markdown tables that tests printed."""
    blocks, rows = [], []
    for line in [*output.splitlines(), ""]:
        # a test's dot may stand before its first line
        row = line.lstrip(".F")
        if row.startswith("| ") or row.startswith("|-"):
            rows.append(row)
        elif rows:
            # a lone row is no table: its test prints it again in one
            if len(rows) > 2:
                blocks.append("\n".join(rows))
            rows = []
    return blocks


def plain(reason: str) -> str:
    """Make a failure fit in a line."""
    text = " ".join(reason.split()) or "see the log"
    return text if len(text) <= _MOST_REASON else text[: _MOST_REASON - 1] + "…"


def run(module: str, marker: str, seconds: float) -> Outcome:
    """Run one module to its end, or to the end of its time."""
    command = f'pytest -m "{marker}" -s tests/gpu/{module}.py'
    pytest = [sys.executable, "-m", "pytest", "-m", marker, "-s", "--tb=short"]
    try:
        done = subprocess.run(
            [*pytest, f"tests/gpu/{module}.py"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "400", "PYTHONUNBUFFERED": "1"},
        )
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"") + f"\nstopped after {seconds:.0f} s\n".encode()
    return Outcome(module, command, output.decode(errors="replace"))


def machine() -> str:
    """Name the GPUs, the driver, torch and Python."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        rows = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()
    except FileNotFoundError:
        rows = []
    name, _, driver = (rows[0] if rows else "no GPU, -").partition(", ")
    version = "import torch; print(torch.__version__)"
    torch = subprocess.run([sys.executable, "-c", version], capture_output=True)
    return (
        f"{len(rows)} x {name}, driver {driver}, torch "
        f"{torch.stdout.decode().strip() or 'none'}, "
        f"Python {sys.version.split()[0]}"
    )


def put(page: Path, module: str, section: str) -> None:
    """Replace the module's section of the page, or add it."""
    old = page.read_text() if page.exists() else "# Profiling on real GPUs\n"
    match = re.search(
        rf"^## {re.escape(module)}\n.*?(?=^## |\Z)", old, re.MULTILINE | re.DOTALL
    )
    if match is None:
        page.write_text(f"{old.rstrip()}\n\n{section}\n")
        return
    rest = old[match.end() :]
    page.write_text(old[: match.start()] + section + "\n" + ("\n" + rest) * bool(rest))


def commit() -> str:
    """Give the commit of this tree, where git knows it."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return completed.stdout.strip() or "unknown"


def main() -> int:
    """Run the modules that were asked for, until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="without .py; by default all")
    parser.add_argument("--two-gpus", action="store_true", help="those that need two")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--logs", type=Path, help="the folder for whole outputs")
    parser.add_argument("--commit", help="where the tree has no .git")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    end_s = time.monotonic() + 60 * options.minutes
    marker = "two_gpus" if options.two_gpus else "gpu"
    wanted = options.modules or [
        path.stem
        for path in sorted(TESTS.glob("test_*.py"))
        if re.search(rf"mark\.{marker}\b", path.read_text())
    ]
    when = f"{datetime.now(timezone.utc):%Y-%m-%d}, {machine()}, "
    when += f"commit {options.commit or commit()}"
    print(when, flush=True)
    left = []
    for module in wanted:
        seconds = min(end_s - time.monotonic(), _MOST_S)
        if seconds < 30:
            left.append(module)
            continue
        outcome = run(module, marker, seconds)
        section = outcome.section(when)
        print(f"\n{section}", flush=True)
        if options.logs:
            options.logs.mkdir(parents=True, exist_ok=True)
            (options.logs / f"{module}.log").write_text(outcome.output)
        if options.write:
            put(options.write, module, section)
    if left:
        print(f"\nNo time was left for: {' '.join(left)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
