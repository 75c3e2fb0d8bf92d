"""Labs as a course publishes them: when, to whom, and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.rules.lateness import Window
from warpbook.hub.rules.points import PointScheme


class Publication(Struct, frozen=True):
    """A lab of a course."""

    course: str
    #: its id in the catalogue, or of the course's own
    lab: str
    title: str
    language: str
    #: whether right sources go on to a GPU
    is_timed: bool
    #: by the name of the section; "" stands for all that are not named
    windows: Mapping[str, Window]
    scheme: PointScheme = PointScheme()
    is_team_work: bool = False
    late_percent_per_day: float = 100.0
    #: None: as many as one likes
    most_attempts: int | None = None
    #: SHA-256 of what decides a grade; "": that of the first result is taken
    lab_digest: str = ""
    #: given by the hub
    id: str = ""
    is_withdrawn: bool = False


def publish(
    connection: Connection, now_ms: int, actor: str, publication: Publication
) -> str:
    """Publish a lab, or change how it is published; what was submitted stays.

    Returns:
        Its id.

    Raises:
        BadRequest: a window ends before it begins, or points can't be meant.
        NotFound: there is no such course or section.
    """
    raise NotImplementedError


def withdraw(
    connection: Connection, now_ms: int, actor: str, publication_id: str, reason: str
) -> None:
    """Take a lab off the list; what was submitted stays, and no more is taken.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def publications(connection: Connection, course_id: str) -> list[Publication]:
    """Give all labs of a course, in the order of their due dates."""
    raise NotImplementedError


def publication(connection: Connection, publication_id: str) -> Publication:
    """Give a published lab.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def extend(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    due_ms: int,
    closes_ms: int,
    reason: str,
) -> None:
    """Give one learner other dates, in place of any given before.

    Raises:
        BadRequest: they end before they begin, or no reason is given.
        NotFound: there is no such lab or learner.
    """
    raise NotImplementedError


def window_of(
    connection: Connection, publication_id: str, person: str
) -> Window | None:
    """Give when a lab takes submissions of somebody; None if it is not for them."""
    raise NotImplementedError


def reference(connection: Connection, publication_id: str) -> str:
    """Give the reference of a lab; empty until its first result.

    Who may see it is asked of `rules.visibility`, with `reference_from`.

    Raises:
        NotFound: there is no such lab.
    """
    raise NotImplementedError


def reference_from(connection: Connection, publication_id: str) -> int:
    """Tell from when learners see the reference of a lab.

    Raises:
        NotFound: there is no such lab.
    """
    raise NotImplementedError
