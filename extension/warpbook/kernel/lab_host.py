"""Of a lab's card: what host code asked of the simulated GPU, and a picture of when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from warpbook_labs.host.words import LANES, TITLE, WAITS, count_rows
from warpbook_monitors import units
from warpbook_monitors.plain_text import bounded

Plain = Mapping[str, Any]

_WIDTH, _LEFT, _LANE, _BAR = 640, 90, 24, 16
_MOST_BARS = 400
#: colours that are seen on light and on dark
_COLOURS = {"host": "#888888", "h2d": "#d98200", "compute": "#1f77b4", "d2h": "#2ca02c"}


def host_html(case: Plain | None) -> str:
    """Write counts and a timeline of a case; empty where there are none."""
    counts: Plain | None = (case or {}).get("host_counts")
    if case is None or counts is None:
        return ""
    whole = {name: each for name, each in counts.items() if isinstance(each, int)}
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>"
        for name, words in count_rows(whole)
    )
    title = f"{TITLE} ({bounded(str(case['about']), 120)})"
    bars: Sequence[Plain] = case.get("bars") or ()
    return (
        f"<details open><summary>{escape(title)}</summary><dl>{rows}</dl>"
        f"{_picture(bars[:_MOST_BARS])}</details>"
    )


def _picture(bars: Sequence[Plain]) -> str:
    end_ns = max((int(each["end_ns"]) for each in bars), default=0)
    if not end_ns:
        return ""
    took = units.duration(end_ns / 1e6)
    height = _LANE * len(LANES) + 16
    said = f"What was done when; the whole width is {took}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(said)}" '
        'style="width: 100%; max-width: 46em" font-size="11" fill="currentColor">'
        f"{''.join(_parts(bars, end_ns))}"
        f'<text x="{_LEFT}" y="{height - 3}">0</text>'
        f'<text x="{_WIDTH}" y="{height - 3}" text-anchor="end">{escape(took)}</text>'
        "</svg>"
    )


def _parts(bars: Sequence[Plain], end_ns: int) -> Iterator[str]:
    for number, (engine, name) in enumerate(LANES):
        top = number * _LANE
        yield f'<text x="0" y="{top + 14}">{escape(name)}</text>'
        yield (
            f'<path d="M{_LEFT} {top + 20}H{_WIDTH}" stroke="currentColor" '
            'opacity="0.25"/>'
        )
        for each in bars:
            if each["engine"] == engine:
                yield _bar(each, top + 20 - _BAR, end_ns)


def _bar(bar: Plain, top: int, end_ns: int) -> str:
    begin, end = int(bar["begin_ns"]), int(bar["end_ns"])
    scale = (_WIDTH - _LEFT) / end_ns
    label = bounded(str(bar["label"]), 80)
    words = f"{label}, {units.duration((end - begin) / 1e6)}"
    if bar.get("line"):
        words += f", line {int(bar['line'])}"
    faint = ' opacity="0.35"' if label == WAITS else ""
    return (
        f'<rect x="{_LEFT + begin * scale:.1f}" y="{top}" '
        f'width="{max((end - begin) * scale, 0.6):.1f}" height="{_BAR}" '
        f'fill="{_COLOURS[bar["engine"]]}"{faint}><title>{escape(words)}</title></rect>'
    )
