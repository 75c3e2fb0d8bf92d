"""Brings a course's learners to what a roster says."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.course.roster_csv import RosterRow


class RosterChanges(Struct, frozen=True):
    """What an import changes, by user name."""

    added: tuple[str, ...] = ()
    #: names, section or team
    changed: tuple[str, ...] = ()
    #: no more on the roster: their work is kept, and they submit nothing
    hidden: tuple[str, ...] = ()
    #: were hidden before
    returned: tuple[str, ...] = ()
    unchanged: int = 0


def import_roster(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    rows: Sequence[RosterRow],
) -> RosterChanges:
    """Add, change and hide learners; doing it twice changes nothing the second time.

    Instructors and assistants are left as they are, also where the roster names them.

    Raises:
        NotFound: there is no such course.
    """
    raise NotImplementedError


def preview(
    connection: Connection, course_id: str, rows: Sequence[RosterRow]
) -> RosterChanges:
    """Tell what an import would change.

    Raises:
        NotFound: there is no such course.
    """
    raise NotImplementedError
