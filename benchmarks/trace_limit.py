"""A trace file's whole report, beside `json.load` of the same file: a fixed limit.

    python benchmarks/trace_limit.py [--repeats 5] [--write docs/benchmarks.md]

Both take turns, each time in a fresh process. A ratio is of neighbours in time, and of
the CPU's time, of processes that they start too: others may use the machine.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "extension"), str(ROOT / "monitors")]

from benchmarks.report import ask, spread, tell
from benchmarks.trace import Result, measure
from benchmarks.trace_file import write_trace

_EVENTS = (300_000, 1_000_000)


def row(events: int, repeats: int) -> str:
    """Measure both on one file, in turn; return their row of the table."""
    runs: list[tuple[Result, Result]] = []
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        write_trace(trace, events)
        size_mb = trace.stat().st_size / 1e6
        for _ in range(repeats):
            runs.append((measure("json_load", trace), measure("warpbook", trace)))
            print(f"{events:,} events: {runs[-1]}", flush=True)
    cells = [f"{events:,}", f"{size_mb:.0f}"]
    for key in ("cpu_seconds", "seconds"):
        cells += [spread([run[at][key] for run in runs], 2) for at in (0, 1)]
        cells.append(spread([own[key] / limit[key] for limit, own in runs], 2))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, and print the table."""
    options = ask(__doc__, repeats=5)
    table = [
        "| events | MB | json.load, CPU s | warpbook analyze, CPU s | ratio "
        "| json.load, s | warpbook analyze, s | ratio |",
        "|---|---|---|---|---|---|---|---|",
        *(row(events, options.repeats) for events in _EVENTS),
    ]
    tell(options, "From a trace file to its report, beside json.load", "\n".join(table))


if __name__ == "__main__":
    main()
