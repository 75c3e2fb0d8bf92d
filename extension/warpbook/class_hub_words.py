"""Receipts and states of a course's hub in words, the same in notebook and terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from warpbook.hub_protocol import SubmissionReceipt, SubmissionState
from warpbook_monitors.plain_text import bounded

_MOST_WORDS = 300
_STATES = {
    "waits": "waits in the queue",
    "runs": "is being graded",
    "hidden": "taken; your instructor has not released the marks yet",
}


def receipt_rows(
    receipt: SubmissionReceipt, state: SubmissionState | None
) -> list[tuple[str, str]]:
    at = datetime.fromtimestamp(receipt.received_ms / 1000).astimezone()
    late = f", {receipt.late_hours} h late" if receipt.late_hours else ", in time"
    if receipt.extended_ms:
        minutes = max(1, round(receipt.extended_ms / 60_000))
        late += f"; due {minutes} min later: the hub was away"
    return [
        ("submission", f"{receipt.number} ({receipt.submission})"),
        ("received", f"{at:%Y-%m-%d %H:%M:%S %Z}{late}"),
        ("SHA-256", receipt.source_digest),
        ("now", state_words(state)),
        *_feedback_rows(state),
    ]


def _feedback_rows(state: SubmissionState | None) -> Iterator[tuple[str, str]]:
    """Say what staff gave and wrote."""
    for row in () if state is None else state.rubric:
        given = "no points yet" if row.points is None else f"{row.points:g}"
        yield "rubric", bounded(f"{row.title}: {given} of {row.of:g}", _MOST_WORDS)
    for one in () if state is None else state.comments:
        where = f"line {one.line}: " if one.line else ""
        yield "comment", bounded(where + one.note, _MOST_WORDS)


def state_words(state: SubmissionState | None) -> str:
    if state is None:
        return "the hub does not answer; the receipt holds"
    words = _STATES.get(state.state, state.state)
    if state.result is not None:
        points, given = state.result.points, "No points yet"
        if points is not None:
            given = f"{points.points:g} of {points.of:g} points"
        graded = f"{given}. {bounded(state.result.facts.message, _MOST_WORDS)}"
        return f"{graded} (speed: {words})" if state.is_provisional else graded
    if state.place is None:
        return words
    words += f", {state.place.before} before it"
    if state.place.eta_s is not None:
        words += f", done in about {max(1, round(state.place.eta_s))} s"
    return words
