"""Labs and texts in a list, as they are sent: plain values."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class SoFar(Struct, frozen=True):
    """How far a person is with a lab."""

    state: Literal["new", "begun", "tried", "passed"] = "new"
    attempts: int = 0
    hints: int = 0
    #: of the best submission
    right: int = 0
    of: int = 0


class LabEntry(Struct, frozen=True):
    """One lab in the list."""

    id: str
    number: int
    title: str
    track: str
    language: str
    minutes: int
    #: "easy", "medium" or "hard"; None where the lab does not say
    difficulty: str | None
    goal: str
    #: ids of labs to have done before
    after: tuple[str, ...]
    #: in words
    needs: tuple[str, ...]
    can_check: bool
    #: why it can't be checked here, or what is left out of this lab; empty if nothing
    #: is beyond what holds for all labs
    why: str
    #: None where it is not known
    progress: SoFar | None


class TextEntry(Struct, frozen=True):
    """One text in the list: what a lab can't run, with pictures and questions."""

    id: str
    title: str
    about: str
    minutes: int
    #: ids of labs that it goes with
    labs: tuple[str, ...]
    #: how many it has
    questions: int
