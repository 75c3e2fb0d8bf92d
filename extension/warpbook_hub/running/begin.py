"""`python -m warpbook_hub.running.begin`: what is in the database before all else.

It runs as the service's account, before the service is there: the course, its
people, and this machine's grader, whose token is written on stdout.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from warpbook_hub.clock import HubClock
from warpbook_hub.course.courses import (
    Course,
    add_staff,
    courses,
    create_course,
    fit_username,
    members,
)
from warpbook_hub.course.operators import name_operators
from warpbook_hub.database.hub_database import DATABASE, HubDatabase
from warpbook_hub.errors import BadRequest, HubError
from warpbook_hub.keeping.backup import restore
from warpbook_hub.leases.grants import register_keeper
from warpbook_hub.queue.graders import register
from warpbook_hub.running.plan import PLAN, RESTORE, StartReport, read_plan

GRADER = "this-machine"


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
                people = begin_course(
                    connection,
                    now_ms,
                    course,
                    plan.instructors,
                    plan.operators,
                    # of a demo: who starts it
                    plan.operators if plan.users == "shared" else (),
                )
                token = register(connection, now_ms, "hub", GRADER)
                keeper_token = register_keeper(connection)
        finally:
            database.close()
    except HubError as refusal:
        sys.stderr.write(f"{refusal}\n")
        return 1
    begun = StartReport(people, token, keeper_token)
    sys.stdout.write(msgspec.json.encode(begun).decode())
    return 0


def begin_course(
    connection: Connection,
    now_ms: int,
    course: Course,
    instructors: Sequence[str],
    operators: Sequence[str],
    otherwise: Sequence[str] = (),
) -> str:
    """Have a course and the hub's operators; a course that is there keeps its settings.

    An instructor whom the course does not know is added. Whoever is or was of it stays
    what they are: the database says so, and a start changes no role.

    Args:
        course: as it is begun.
        instructors: user names.
        operators: user names, in place of those of the start before; tied to an id of
            the platform as NAME=ID.
        otherwise: the instructors of a new course for which nobody is named.

    Returns:
        Who runs the course and the hub now, and what became of the names.

    Raises:
        BadRequest: the course's id, title, or a name can't be used; or the course is
            new and nobody would run it.
    """
    if course.id not in {one.id for one in courses(connection)}:
        instructors = instructors or [name.partition("=")[0] for name in otherwise]
        if not instructors:
            raise BadRequest(
                f"The course `{course.id}` is new. Name who runs it: --instructor NAME"
            )
        create_course(connection, now_ms, "hub", course)
    known = {member.username: member for member in members(connection, course.id)}
    lines = []
    for name in dict.fromkeys(map(fit_username, instructors)):
        member = known.get(name)
        if member is None:
            add_staff(connection, now_ms, "hub", course.id, name, "instructor")
            lines.append(f"  Added as instructor: {name}")
        elif member.role != "instructor":
            was = "was removed" if member.is_hidden else f"is {member.role} there"
            lines.append(f"  NOT ADDED: {name} {was}. *People* makes them instructor")
    name_operators(connection, now_ms, operators)
    run_by = sorted(
        member.username
        for member in members(connection, course.id)
        if member.role == "instructor" and not member.is_hidden
    )
    lines.insert(0, f"  Run by {', '.join(run_by)}")
    names = ", ".join(name.partition("=")[0] for name in operators)
    lines.append(f"  Operated by {names or 'nobody'} (--operator NAME)")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
