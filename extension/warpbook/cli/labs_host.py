"""Of the card of a lab: what the simulated GPU was asked, and when it did what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpbook_labs.host.words import LANES, TITLE, WAITS, count_rows
from warpbook_labs.results import CaseResult
from warpbook_labs.simulated.judging.timeline import Bar
from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded, labelled

_COLUMNS = 60
_IDLE, _WAITING, _BUSY = ".-#"


def host_lines(case: CaseResult) -> Iterator[str]:
    """Write counts and a timeline; nothing where there are none."""
    if case.host_counts is None:
        return
    yield f"{TITLE} ({bounded(case.about)})"
    rows = list(count_rows(case.host_counts.as_numbers()))
    for line in labelled(rows):
        yield f"  {line}"
    end_ns = max((each.end_ns for each in case.bars), default=0)
    if end_ns:
        yield ""
        for engine, name in LANES:
            bars = [each for each in case.bars if each.engine == engine]
            yield f"  {name:13} {_lane(bars, end_ns)}"
        legend = f"{_BUSY} busy, {_WAITING} waits; the width is"
        yield f"  {'':13} {legend} {units.duration(end_ns / 1e6)}"


def _lane(bars: Sequence[Bar], end_ns: int) -> str:
    columns = [_IDLE] * _COLUMNS
    for each in sorted(bars, key=lambda bar: bar.label != WAITS):
        first = each.begin_ns * _COLUMNS // end_ns
        last = max(first, (each.end_ns * _COLUMNS - 1) // end_ns)
        mark = _WAITING if each.label == WAITS else _BUSY
        for at in range(first, min(last, _COLUMNS - 1) + 1):
            columns[at] = mark
    return "".join(columns)
