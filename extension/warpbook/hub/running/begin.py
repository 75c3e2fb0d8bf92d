"""`python -m warpbook.hub.running.begin`: what is in the database before all else.

It runs as the service's account, before the service is there: the course, its
instructors, and this machine's grader, whose token is written on stdout.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub.clock import HubClock
from warpbook.hub.course.courses import (
    Course,
    add_staff,
    courses,
    create_course,
    fit_username,
)
from warpbook.hub.database.opening import HubDatabase
from warpbook.hub.database.tables import MEMBERSHIPS, PEOPLE
from warpbook.hub.errors import HubError
from warpbook.hub.keeping.backup import restore
from warpbook.hub.leases.granting import register_keeper
from warpbook.hub.queue.graders import register
from warpbook.hub.running.plan import PLAN, read_plan
from warpbook.hub.service.service import DATABASE

GRADER = "this-machine"
#: names a backup that is put in place first
RESTORE = "WARPBOOK_HUB_RESTORE"


class Begun(Struct, frozen=True):
    """What the supervisor is told."""

    #: of this machine's grader
    token: str
    #: of the keeper of leased GPUs
    keeper_token: str


def main() -> int:
    """Bring the database to the plan."""
    plan = read_plan(Path(os.environ[PLAN]))
    now_ms = HubClock().now_ms()
    try:
        database = HubDatabase(plan.course_folder / DATABASE)
        try:
            backup = os.environ.get(RESTORE)
            if backup:
                restore(database, Path(backup), now_ms, "hub")
            with database.write() as connection:
                course = Course(plan.course, plan.title)
                begin_course(connection, now_ms, course, plan.instructors)
                token = register(connection, now_ms, "hub", GRADER)
                keeper_token = register_keeper(connection)
        finally:
            database.close()
    except HubError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    begun = Begun(token, keeper_token)
    sys.stdout.write(msgspec.json.encode(begun).decode())
    return 0


def begin_course(
    connection: Connection,
    now_ms: int,
    course: Course,
    instructors: Iterable[str],
    only_new: bool = False,
) -> None:
    """Have a course with these instructors; one that is there keeps its settings.

    Args:
        connection: of a transaction that writes.
        now_ms: the time.
        course: as it is begun.
        instructors: their user names.
        only_new: leave who is of the course as they are there.

    Raises:
        BadRequest: the course's id, title, or a name can't be used.
    """
    if course.id not in {one.id for one in courses(connection)}:
        create_course(connection, now_ms, "hub", course)
    members = (
        select(PEOPLE.c.username)
        .join(MEMBERSHIPS, MEMBERSHIPS.c.person == PEOPLE.c.id)
        .where(MEMBERSHIPS.c.course == course.id)
    )
    known = set(connection.execute(members).scalars()) if only_new else set()
    for name in instructors:
        if fit_username(name) in known:
            continue
        add_staff(connection, now_ms, "hub", course.id, name, "instructor")


if __name__ == "__main__":
    sys.exit(main())
