"""The bare run of a million events: what replay and judgement take next to the report.

Processor seconds of this process, on one core; the events are those of
`tests/many_events.py`, decoded already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.report import ask, spread, tell
from tests.many_events import simulated
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.program import program_of
from warpbook_profiler.replay.simulation import simulate
from warpbook_profiler.replay.tax import taxed
from warpbook_profiler.verdict.analysis import analyse
from warpbook_profiler.verdict.bare_judging import judge_bare
from warpbook_profiler.verdict.metrics import measure

_HEADING = "The bare run of a million events"


def main() -> None:
    """Measure, and tell."""
    options = ask(__doc__, events=1_000_000, repeats=5)
    events, run = simulated(int(options.events))
    trace = Trace(events, run)
    recorded = measure(trace)
    program = program_of(trace)
    host = taxed(program, trace)
    parts: dict[str, Callable[[], object]] = {
        "reading the program": lambda: program_of(trace),
        "taking the profiler's part off": lambda: taxed(program, trace),
        "one replay": lambda: simulate(program, host.kept(0.6)),
        "range, and verdict at both ends": lambda: judge_bare(trace, recorded),
        "the whole report": lambda: analyse(events, run),
    }
    rows = [f"| {len(events):,} events | s |", "|---|---|"]
    for name, part in parts.items():
        took = [_seconds(part) for _ in range(int(options.repeats))]
        rows.append(f"| {name} | {spread(took, 2)} |")
    tell(options, _HEADING, "\n".join(rows))


def _seconds(part: Callable[[], object]) -> float:
    began = time.process_time()
    part()
    return time.process_time() - began


if __name__ == "__main__":
    main()
