"""Labs, paths and texts in a list, as they are sent: plain values."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


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


class PathPart(Struct, frozen=True, forbid_unknown_fields=True):
    """Labs of a learning path that belong together, such as those of a day."""

    title: Annotated[str, Meta(min_length=1, max_length=200)]
    #: ids, in order
    labs: Annotated[tuple[str, ...], Meta(min_length=1, max_length=100)]
    #: ids of texts to go through after the labs
    texts: Annotated[tuple[str, ...], Meta(max_length=20)] = ()


class PathEntry(Struct, frozen=True):
    """One learning path in the list."""

    id: str
    title: str
    about: str
    #: of all its labs that are here
    minutes: int
    #: of those that are not passed; None where that is not known
    minutes_left: int | None
    #: labs that are passed; None where that is not known
    passed: int | None
    parts: tuple[PathPart, ...]


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
