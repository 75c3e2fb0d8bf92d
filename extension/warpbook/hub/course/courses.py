"""Courses, and who somebody is in one."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.rules.visibility import Viewer


class Course(Struct, frozen=True):
    """A course and its settings."""

    id: str
    title: str
    #: of each learner, for all labs together
    late_budget_h: int = 0
    #: of each learner or team
    timed_runs_per_hour: int = 6
    #: after a result, for an appeal
    appeal_window_h: int = 24 * 7


class Member(Struct, frozen=True):
    """Somebody of a course."""

    person: str
    username: str
    first_name: str
    last_name: str
    email: str
    role: str
    section: str
    #: empty where they are in none
    team: str
    is_hidden: bool


def create_course(
    connection: Connection, now_ms: int, actor: str, course: Course
) -> None:
    """Begin a course, with a section called `main`.

    Raises:
        BadRequest: its id or a setting can't be used.
        Conflict: there is one of this id.
    """
    raise NotImplementedError


def change_course(
    connection: Connection, now_ms: int, actor: str, course: Course
) -> None:
    """Give a course other settings.

    Raises:
        NotFound: there is none of this id.
    """
    raise NotImplementedError


def courses(connection: Connection) -> list[Course]:
    """Give all courses."""
    raise NotImplementedError


def course(connection: Connection, course_id: str) -> Course:
    """Give a course.

    Raises:
        NotFound: there is none of this id.
    """
    raise NotImplementedError


def viewer(connection: Connection, course_id: str, username: str) -> Viewer:
    """Tell who somebody is in a course.

    Raises:
        NotFound: they are not of the course.
    """
    raise NotImplementedError


def person_of(connection: Connection, username: str) -> str:
    """Give the id of a person.

    Raises:
        NotFound: nobody has this name.
    """
    raise NotImplementedError


def members(connection: Connection, course_id: str, section: str = "") -> list[Member]:
    """Give everybody of a course, or of a section; also those who are hidden."""
    raise NotImplementedError


def add_staff(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    username: str,
    role: str,
    section: str = "main",
) -> str:
    """Make somebody an instructor or assistant, who may be on no roster.

    Twice changes nothing.

    Returns:
        The id of the person.

    Raises:
        BadRequest: the role or the name can't be used.
        NotFound: there is no such course or section.
    """
    raise NotImplementedError
