"""How far a person is with a lab, in words for lists."""

from __future__ import annotations

from warpbook_labs.lab.entries import SoFar

_STATES = {"new": "not begun", "begun": "begun", "passed": "passed"}


def how_far(done: SoFar | None) -> str:
    """Say it in a word or two."""
    if done is None:
        return "not known"
    if done.state == "tried":
        noun = "case" if done.of == 1 else "cases"
        return f"{done.right:,} of {done.of:,} {noun}"
    return _STATES[done.state]
