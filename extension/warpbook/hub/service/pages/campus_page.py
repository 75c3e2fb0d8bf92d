"""The campus board as a page: a strip of every GPU, courses' energy, and the week."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from warpbook.hub.nodes import campus, history, kernel_hints, registry
from warpbook.hub.nodes.history import HOURS, MINUTES, Ratios
from warpbook.hub.nodes.kernel_hints import HintsNow
from warpbook.hub.nodes.taking import HOUR_MS
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.pages.words import share
from warpbook_monitors import units
from warpbook_monitors.verdicts.verdict import QUIET_RATIO

STATES = {
    "works": "works",
    "held": "held, work not known",
    "idle": "held without work",
    "free": "free",
    "unknown": "no work, holders not known",
    "unread": "can't be read",
    "lost": "not heard of",
}
HINTS = {
    "off": "not taken",
    "activity": "busy or idle",
    "notebooks": "busy or idle, and names of notebooks",
}
TAGS = {"works": "", "held": "", "idle": "warn", "free": "good"}
_LEVELS = (QUIET_RATIO, 0.25, 0.5, 0.75)
_CELL, _HEIGHT = 6, 22


def campus_page(admitted: Admitted, hints: HintsNow) -> dict[str, Any]:
    """Show all nodes."""
    connection, now_ms = admitted.connection, admitted.now_ms
    nodes = campus.campus(connection, now_ms, hints)
    counts = campus.counts(nodes)
    weeks = history.weeks(connection, now_ms)
    minutes = history.hours(connection, now_ms)
    return {
        "nodes": nodes,
        "total": sum(counts.values()),
        "counts": {STATES[state]: count for state, count in counts.items() if count},
        "week_of": lambda node: _week(weeks.get(node.node.id), now_ms),
        "hour_of": lambda node, gpu: _hour(minutes.get((node.node.id, gpu.gpu))),
        "courses": history.energy_of_courses(connection, now_ms),
        "weeks_kept": registry.weeks_kept(connection),
        "most_weeks": registry.MOST_WEEKS,
        "takes_hints": kernel_hints.policy(connection),
        "policies": HINTS,
        "states": STATES,
        "tags": TAGS,
        "joules": lambda joules: (
            "not known" if joules is None else units.energy(joules)
        ),
        "size": units.size,
    }


def _week(ratios: Ratios | None, now_ms: int) -> str:
    first_ms = now_ms // HOUR_MS * HOUR_MS - (HOURS - 1) * HOUR_MS

    def name(place: int) -> str:
        at = datetime.fromtimestamp((first_ms + place * HOUR_MS) / 1000, timezone.utc)
        return f"{at:%a %Y-%m-%d %H}:00 UTC"

    midnights = [
        place for place in range(HOURS) if (first_ms // HOUR_MS + place) % 24 == 0
    ]
    return strip(ratios or (None,) * HOURS, name, "hours", midnights)


def _hour(ratios: Ratios | None) -> str:
    def name(place: int) -> str:
        ago = MINUTES - 1 - place
        return "this minute" if not ago else f"{ago} min ago"

    return strip(ratios or (None,) * MINUTES, name, "minutes")


def strip(
    ratios: Ratios, name: Callable[[int], str], what: str, marks: Sequence[int] = ()
) -> str:
    """Draw shares of time as a row of cells; a reader hears their sum.

    Args:
        ratios: oldest first; None where nothing is known.
        name: of a cell, by its place.
        what: the cells are, in the plural.
        marks: places before which a line is drawn.
    """
    known = [ratio for ratio in ratios if ratio is not None]
    words = f"nothing known of {len(ratios)} {what}"
    if known:
        most = max(known)
        words = (
            f"active {share(sum(known) / len(known))} of the time, most "
            f"{share(most)} ({name(ratios.index(most))})"
        )
        if len(known) < len(ratios):
            unknown = len(ratios) - len(known)
            words += f"; {unknown} of {len(ratios)} {what} not known"
    cells = "".join(
        f'<rect class="heat{_level(ratio)}" x="{place * _CELL}" y="1" '
        f'width="{_CELL - 1}" height="{_HEIGHT - 2}"><title>{name(place)}: '
        f"{'not known' if ratio is None else share(ratio)}</title></rect>"
        for place, ratio in enumerate(ratios)
    )
    cells += "".join(
        f'<rect class="mark" x="{place * _CELL - 1}" y="0" width="1" '
        f'height="{_HEIGHT}"/>'
        for place in marks
    )
    size = f"0 0 {len(ratios) * _CELL} {_HEIGHT}"
    return (
        f'<svg class="strip {what}" viewBox="{size}" preserveAspectRatio="none" '
        f'role="img" aria-label="{words}">{cells}</svg>'
    )


def _level(ratio: float | None) -> str:
    if ratio is None:
        return "-none"
    return str(sum(ratio >= least for least in _LEVELS))
