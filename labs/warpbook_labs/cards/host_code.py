"""Of a card: what host code asked of the simulated GPU, and a timeline of when."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_labs.cards.model import (
    BytesCell,
    CardBar,
    CardFact,
    CardFacts,
    CardLane,
    CardSection,
    CardTimeline,
    DurationCell,
    NumberCell,
    RatioCell,
)
from warpbook_labs.cards.words import counted, limited
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.findings import Bar, HostCounts

TITLE = "Last call on the simulated GPU"
#: the engine's name in a result, and in words
_LANES = (
    ("host", "host"),
    ("h2d", "to the GPU"),
    ("compute", "kernels"),
    ("d2h", "from the GPU"),
)
#: how the simulated GPU labels a host that waits
_WAITS = "waits"
#: beyond it nothing bounded the time
_MOST_PERCENT = 100_000
_MOST_BARS = 400
_MOST_LABEL = 80


def host_sections(case: CaseResult | None) -> Iterator[CardSection]:
    """Give counts and a timeline of a case, where there are any."""
    if case is None or case.host_counts is None:
        return
    facts = CardFacts(tuple(_facts(case.host_counts)))
    title = f"{TITLE} ({limited(case.about, 120)})"
    yield CardSection(title, (facts, *_timelines(case.bars)), "open")


def _facts(counts: HostCounts) -> Iterator[CardFact]:
    requests = [
        (counts.launches, "launch", "launches"),
        (counts.graph_launches, "graph launch", "graph launches"),
        (counts.captures, "capture", "captures"),
        (counts.synchronizations, "host synchronization", "host synchronizations"),
    ]
    yield CardFact(
        "requests",
        tuple(
            NumberCell(count, counted(count, one, many))
            for count, one, many in requests
            # launches and synchronizations are told even where there are none
            if count or one in ("launch", "host synchronization")
        ),
    )
    moved = [
        BytesCell(counts.h2d_bytes, "to the GPU"),
        BytesCell(counts.d2h_bytes, "from the GPU"),
    ]
    if counts.pageable_bytes:
        moved.append(BytesCell(counts.pageable_bytes, "of them pageable"))
    yield CardFact("transfers", tuple(moved))
    yield CardFact(
        "GPU memory",
        (
            BytesCell(counts.device_bytes, "allocated"),
            BytesCell(counts.held_bytes, "peak beside the buffers"),
        ),
    )
    yield CardFact("total time", _total(counts))
    for label, duration_ns in (
        ("host busy", counts.host_ns),
        ("copies busy", counts.copy_ns),
        ("kernels busy", counts.compute_ns),
    ):
        yield CardFact(label, (DurationCell(duration_ns),))
    if counts.convolution_percent:
        ratio = counts.convolution_percent / 100
        cell = RatioCell(ratio, "times", "the time of the fastest algorithms (modeled)")
        yield CardFact("convolutions", (cell,))
    if counts.unrepeatable:
        launches = counted(counts.unrepeatable, "launch", "launches")
        cells = (NumberCell(counts.unrepeatable, launches),)
        yield CardFact("non-deterministic", cells)


def _total(counts: HostCounts) -> tuple[DurationCell | RatioCell, ...]:
    """Give the whole time, and beside it the least that the busiest engine needs."""
    total = DurationCell(counts.total_ns)
    if not 0 < counts.percent_of_bound < _MOST_PERCENT:
        return (total,)
    ideal = RatioCell(counts.percent_of_bound / 100, "times", "the ideal time")
    return (total, ideal)


def _timelines(bars: tuple[Bar, ...]) -> Iterator[CardTimeline]:
    drawn = bars[:_MOST_BARS]
    end_ns = max((bar.end_ns for bar in drawn), default=0)
    if end_ns <= 0:
        return
    lanes = tuple(
        CardLane(
            engine, name, tuple(_bar(bar) for bar in drawn if bar.engine == engine)
        )
        for engine, name in _LANES
    )
    yield CardTimeline(end_ns, lanes)


def _bar(bar: Bar) -> CardBar:
    is_waiting = bar.engine == "host" and bar.label == _WAITS
    label = "host synchronization" if is_waiting else limited(bar.label, _MOST_LABEL)
    return CardBar(bar.begin_ns, bar.end_ns, label, bar.line or None, is_waiting)
