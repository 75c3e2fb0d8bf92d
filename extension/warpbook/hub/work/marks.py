"""Marks: what counts of a learner's work."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.rules.standing import LabMark


class Mark(Struct, frozen=True):
    """What a learner has of a lab."""

    person: str
    publication: str
    #: what the best attempt gives, after penalty and late budget
    computed: LabMark
    #: of an instructor, in place of it; None where there is none
    override: float | None
    #: what counts
    points: float
    most_points: float


def marks_of(connection: Connection, course_id: str, person: str) -> tuple[Mark, ...]:
    """Compute the marks of a learner for all labs of a course.

    Raises:
        NotFound: they are not of the course.
    """
    raise NotImplementedError


def all_marks(
    connection: Connection, course_id: str, section: str = ""
) -> dict[str, tuple[Mark, ...]]:
    """Compute the marks of all learners of a course or section, by person."""
    raise NotImplementedError
