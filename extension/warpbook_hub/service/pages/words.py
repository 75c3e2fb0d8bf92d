"""How pages say things: times, points, states.

What gives HTML escapes what it is given.
"""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape

import msgspec
from msgspec import Struct, structs

from warpbook.hub_protocol import AiLog, Place, SubmissionReceipt
from warpbook_hub.queue.coverage import LabCover
from warpbook_hub.rules.lateness import MINUTE_MS, Window
from warpbook_labs.cards.html import card_html
from warpbook_labs.cards.model import PRACTICE, Card, CardText
from warpbook_labs.lab.languages.language import LANGUAGE_NAMES
from warpbook_monitors.plain_text import bounded, printable

STATES = {
    "waits": "waits in the queue",
    "runs": "is being graded",
    "graded": "graded",
    "parked": "parked: an instructor has to retry or cancel it",
    "replaced": "replaced by a newer one, not graded",
    "cancelled": "cancelled",
    "hidden": "graded; the marks are not released yet",
}
#: of marks that have no points
MARKS = {
    "waits": "waits for its grade",
    "parked": "parked: an instructor has to look",
    "not graded": "not graded",
    "not handed in": "not handed in",
    "excused": "excused: it does not count",
    "hidden": "not released yet",
    "withdrawn": "withdrawn",
}
STAGES = {"cpu": "correctness, on a CPU", "gpu": "speed, on a GPU"}
VERDICTS = {
    "right": "✓ right",
    "wrong": "✗ not right yet",
    "undecided": "? the checker can't tell",
    "too busy": "? the GPU was too busy to time it",
}
#: of learners, who may use them with warpbook's tools
AI_POLICIES = {"off": "off", "checking": "for checking only", "on": "on"}
AI_POLICY_TEXTS = {
    "off": "warpbook's tools give an AI assistant nothing of this lab.",
    "checking": "By warpbook's tools an AI assistant may see reports and check. It "
    "gets no hints, explanations or solutions of this lab, and hands nothing in.",
    "on": "An AI assistant may use all of warpbook's tools with this lab.",
}
MEASURES = {
    "right": "share of cases right",
    "of_baseline": "speed, against the baseline",
    "of_limit": "speed, of the GPU's measured limit",
}


_PRACTICE = CardText(PRACTICE, "quiet")


class _Evidence(Struct):
    card: Card | None = None


_decode_evidence = msgspec.json.Decoder(_Evidence).decode


def language(name: str) -> str:
    return LANGUAGE_NAMES.get(name, name)


def when(time_ms: int | None, otherwise: str = "") -> str:
    """Write a time as HTML; a page shows it in the reader's own zone."""
    if time_ms is None:
        return escape(otherwise)
    return _time(time_ms, f"{_utc(time_ms):%H:%M}")


def moment(time_ms: int, since_ms: int | None = None) -> str:
    """Write a time that decides: as exactly as it is judged.

    Args:
        time_ms: the time.
        since_ms: when its window opens: a page says if the clocks change in between.
    """
    shown = "minutes" if time_ms % MINUTE_MS == 0 else "milliseconds"
    if time_ms % MINUTE_MS and time_ms % 1000 == 0:
        shown = "seconds"
    return _time(time_ms, _utc(time_ms).time().isoformat(shown), since_ms)


def due(window: Window) -> str:
    """Say when something is due, and why later than an instructor said."""
    words = moment(window.due_ms, window.opens_ms)
    if window.grace_ms:
        words += f" and {window.grace_ms // MINUTE_MS} min of grace"
    if window.extended_ms:
        words += f" ({later(window.extended_ms)})"
    return words


def later(extended_ms: int) -> str:
    """Say by how much an outage has moved a date."""
    return f"{duration(extended_ms / 1000)} later: the hub was away"


def _utc(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc)


def _time(time_ms: int, clock: str, since_ms: int | None = None) -> str:
    at = _utc(time_ms)
    since = ""
    if since_ms is not None:
        since = f' data-since="{_utc(since_ms).isoformat(timespec="milliseconds")}"'
    return (
        f'<time datetime="{at.isoformat(timespec="milliseconds")}"{since} '
        f'data-length="{len(clock)}">{at:%Y-%m-%d} {clock} UTC</time>'
    )


def points(value: float) -> str:
    """Write points without zeros that say nothing."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def mark(state: str, given: float | None, most: float) -> str:
    """Write a mark: its points, or why it has none."""
    if given is None:
        return MARKS.get(state, state)
    of = f"{points(given)} of {points(most)}"
    return f"{of}, {points(given - most)} of them bonus" if given > most else of


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def duration(seconds: float) -> str:
    """Write about how long something takes."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    if seconds < 48 * 3600:
        return f"about {seconds / 3600:.1f} h"
    return f"about {seconds / 86400:.1f} days"


def place_words(place: Place | None) -> str:
    if place is None:
        return ""
    ahead = (
        "next in the queue"
        if place.before == 0
        else f"{place.before} before it in the queue"
    )
    if place.eta_s is None:
        return f"{ahead}; no grader takes jobs now"
    return f"{ahead}; done in {duration(place.eta_s)}"


def cover_words(cover: LabCover, is_timed: bool) -> str:
    """Say what the graders that are there can grade of a lab, and with what."""
    if not cover.graders:
        return "No grader is there now: what is handed in waits until one is."
    if cover.is_hopeless:
        why = "; ".join(cover.problems)
        return f"No grader here can grade it ({why}): what is handed in is parked."
    slots = "slot" if cover.cpu_slots == 1 else "slots"
    words = f"Graded here: correctness, on {cover.cpu_slots:,} CPU {slots}"
    if is_timed:
        gpus = ", ".join(f"{count:,} × {name}" for name, count in cover.gpus.items())
        words += f"; speed, on {gpus}" if gpus else "; speed is not, without a GPU"
    if cover.unknown:
        words += f". Graders that have not said what they can: {cover.unknown:,}"
    elif cover.problems:
        words += f". Not by all graders: {'; '.join(cover.problems)}"
    return f"{words}."


def one_line(text: object, most: int = 300) -> str:
    """Make somebody else's text fit for a line; the template escapes it."""
    return bounded(str(text), most)


def ai_calls(log: AiLog) -> str:
    """Say how often AI assistants asked."""
    words = f"Calls about this lab: {log.count:,}"
    if log.count > len(log.calls):
        words += f", of which the last {len(log.calls):,} are listed"
    return f"{words}; about no lab, while it was open: {log.others:,}."


def lines(source: str) -> list[str]:
    """Split a source into lines that can be shown."""
    return [printable(line.expandtabs(4)) for line in source.split("\n")]


def card(evidence: str) -> str:
    """Draw the card of a result as HTML; empty where it has none that can be read."""
    try:
        kept = _decode_evidence(evidence).card
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return ""
    if kept is None:
        return ""
    # a submission is no practice, which a card without a number says
    sections = tuple(
        structs.replace(
            section, parts=tuple(part for part in section.parts if part != _PRACTICE)
        )
        for section in kept.sections
    )
    return card_html(structs.replace(kept, sections=sections), style="")


def receipt_text(receipt: SubmissionReceipt) -> str:
    """Write a receipt so that it can be kept, and checked later."""
    return msgspec.json.format(msgspec.json.encode(receipt), indent=1).decode()


def json_lines(evidence: str) -> str:
    """Write evidence so that a person can read it; the template escapes it."""
    try:
        return msgspec.json.format(evidence, indent=2)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return evidence
