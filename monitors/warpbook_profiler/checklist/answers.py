"""The answers of the checklist as they are drawn; nothing is computed here.

Texts are ready to show. Names in them are the profiled program's: views escape them.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

#: "yes": in use; "no": missing, and it would apply; "unknown": nothing recorded tells
Answer = Literal["yes", "no", "not applicable", "unknown"]
#: in the order in which they are read
ANSWERS: tuple[Answer, ...] = ("no", "yes", "unknown", "not applicable")
#: of what work an item is
Part = Literal["any work", "training", "inference"]

#: more are no checklist
MOST_LINES = 100


class Judgement(NamedTuple):
    """How one item stands."""

    answer: Answer
    #: what shows it, with figures
    evidence: str
    #: of "no", what to do and what it gives; of "unknown", what to record
    advice: str = ""


class Line(Struct, frozen=True):
    """One item of the checklist with its answer."""

    name: str
    part: Part
    question: str
    answer: Answer
    #: what shows it, or why the item does not apply
    evidence: str
    #: of "no", what to do and what it gives; of "unknown", what to record; else empty
    advice: str
    #: id of the lab that teaches it, where one does
    lab: str | None


class Checklist(Struct, frozen=True):
    """All items in the order in which they are gone through."""

    lines: Annotated[tuple[Line, ...], Meta(max_length=MOST_LINES)]
    #: how many items have which answer, in words
    summary: str
    #: what to know before believing the answers
    warnings: tuple[str, ...] = ()
