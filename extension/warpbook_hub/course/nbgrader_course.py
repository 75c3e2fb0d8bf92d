"""A course of nbgrader as data: what its gradebook says, bounded."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from warpbook_hub.course.roster import RosterChanges

Text = Annotated[str, Meta(max_length=1_000)]
_Time = Annotated[int, Meta(ge=2, le=7_258_118_400_000)]
_Points = Annotated[float, Meta(ge=0, le=1_000_000)]


class NbgraderStudent(Struct, frozen=True, forbid_unknown_fields=True):
    """A student; None where the gradebook says nothing."""

    id: Text
    first_name: Text | None = None
    last_name: Text | None = None
    email: Text | None = None


class NbgraderMark(Struct, frozen=True, forbid_unknown_fields=True):
    """What a student has of an assignment, after its penalty."""

    points: _Points
    #: how they came about
    note: Annotated[str, Meta(max_length=3_900)]


class NbgraderAssignment(Struct, frozen=True, forbid_unknown_fields=True):
    """An assignment with all of its marks."""

    name: Text
    most_points: _Points
    #: None: it has none
    due_ms: _Time | None = None
    #: of the last submission; None: there is none
    last_ms: _Time | None = None
    #: by the student's id
    marks: Annotated[dict[Text, NbgraderMark], Meta(max_length=5_000)] = {}
    #: how it is graded, in words
    about: Text = ""
    #: why it can't be imported; empty: it can
    problem: Text = ""


class NbgraderCourse(Struct, frozen=True, forbid_unknown_fields=True):
    """A gradebook, and what is done with it."""

    students: Annotated[tuple[NbgraderStudent, ...], Meta(max_length=5_000)]
    assignments: Annotated[tuple[NbgraderAssignment, ...], Meta(max_length=200)]
    is_preview: bool = True
    #: marks that were given here are replaced, too
    replaces: bool = False


class NbgraderLab(Struct, frozen=True):
    """What became of an assignment."""

    name: str
    #: "new", "changed", "unchanged" or "refused"
    how: str
    #: of a refused one why, else how it is graded in nbgrader
    about: str
    most_points: float
    #: how many marks were written, were the same, and were kept as they are here
    written: int = 0
    unchanged: int = 0
    kept: int = 0
    #: the first of those that were written or kept, in words
    examples: tuple[str, ...] = ()


class NbgraderChanges(Struct, frozen=True):
    """What an import did, or would do."""

    roster: RosterChanges
    labs: tuple[NbgraderLab, ...]
    #: people and marks that were left out, in words
    left_out: tuple[str, ...]
