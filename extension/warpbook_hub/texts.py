"""Texts of people: bounded, on one line where they are names, and never steering."""

from __future__ import annotations

import unicodedata

from warpbook_hub.errors import BadRequest

MOST_NAME = 100
MOST_NOTE = 4_000
#: besides control characters: what turns the direction of the text around it
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
#: of these, what names are written with
_JOINERS = "\u200c\u200d"


def is_fit_name(text: str) -> bool:
    """Whether a name is one short line without characters that steer a display."""
    return len(text) <= MOST_NAME and not any(map(_steers, text))


def reason_of(text: str, what: str = "reason") -> str:
    """Give a note of a person without what steers, its ends trimmed.

    Raises:
        BadRequest: it is empty or too long.
    """
    kept = "".join(letter for letter in text if letter == "\n" or not _steers(letter))
    kept = kept.strip()
    if not kept:
        raise BadRequest(f"Write a {what}: it is kept with what is changed.")
    if len(kept) > MOST_NOTE:
        raise BadRequest(f"The {what} is longer than {MOST_NOTE:,} characters.")
    return kept


def _steers(letter: str) -> bool:
    return unicodedata.category(letter) in _STEERING and letter not in _JOINERS
