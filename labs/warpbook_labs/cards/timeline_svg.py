"""Of a lab's card: a timeline as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from warpbook_labs.cards.model import CardBar, CardTimeline
from warpbook_monitors import units
from warpbook_monitors.plain_text import printable

_WIDTH, _LEFT, _LANE, _BAR = 640, 90, 24, 16
#: colours that are seen on light and on dark
_COLOURS = {"host": "#888888", "h2d": "#d98200", "compute": "#1f77b4", "d2h": "#2ca02c"}


def timeline_svg(timeline: CardTimeline) -> str:
    """Draw a lane for each engine."""
    took = units.duration_ns(timeline.end_ns)
    height = _LANE * len(timeline.lanes) + 16
    said = f"What was done when; the full width is {took}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(said)}" '
        'font-size="11" fill="currentColor">'
        f"{''.join(_parts(timeline))}"
        f'<text x="{_LEFT}" y="{height - 3}">0</text>'
        f'<text x="{_WIDTH}" y="{height - 3}" text-anchor="end">{escape(took)}</text>'
        "</svg>"
    )


def _parts(timeline: CardTimeline) -> Iterator[str]:
    for number, lane in enumerate(timeline.lanes):
        top = number * _LANE
        yield f'<text x="0" y="{top + 14}">{escape(printable(lane.name))}</text>'
        yield (
            f'<path d="M{_LEFT} {top + 20}H{_WIDTH}" stroke="currentColor" '
            'opacity="0.25"/>'
        )
        colour = _COLOURS.get(lane.engine, "currentColor")
        for bar in lane.bars:
            yield _bar(bar, colour, top + 20 - _BAR, timeline.end_ns)


def _bar(bar: CardBar, colour: str, top: int, end_ns: int) -> str:
    scale = (_WIDTH - _LEFT) / end_ns
    duration_ns = bar.end_ns - bar.begin_ns
    words = f"{printable(bar.label)}, {units.duration_ns(duration_ns)}"
    if bar.line is not None:
        words += f", line {bar.line}"
    faint = ' opacity="0.35"' if bar.is_waiting else ""
    return (
        f'<rect x="{_LEFT + bar.begin_ns * scale:.1f}" y="{top}" '
        f'width="{max(duration_ns * scale, 0.6):.1f}" height="{_BAR}" '
        f'fill="{colour}"{faint}><title>{escape(words)}</title></rect>'
    )
