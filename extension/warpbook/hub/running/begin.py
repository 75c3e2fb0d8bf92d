"""`python -m warpbook.hub.running.begin`: what is in the database before all else.

It runs as the service's account, before the service is there: the course, its
instructors, and this machine's grader, whose token is written on stdout.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from warpbook.hub.clock import HubClock
from warpbook.hub.course.courses import Course, add_staff, courses, create_course
from warpbook.hub.database.opening import HubDatabase
from warpbook.hub.errors import HubError
from warpbook.hub.keeping.backup import restore
from warpbook.hub.queue.graders import register
from warpbook.hub.running.plan import PLAN, read_plan
from warpbook.hub.service.service import DATABASE

GRADER = "this-machine"
#: names a backup that is put in place first
RESTORE = "WARPBOOK_HUB_RESTORE"


def main() -> int:
    """Bring the database to the plan."""
    plan = read_plan(Path(os.environ[PLAN]))
    now_ms = HubClock().now_ms()
    try:
        database = HubDatabase(plan.course_folder / DATABASE)
        try:
            if os.environ.get(RESTORE):
                restore(database, Path(os.environ[RESTORE]), now_ms, "hub")
            with database.write() as connection:
                if plan.course not in {one.id for one in courses(connection)}:
                    course = Course(plan.course, plan.title)
                    create_course(connection, now_ms, "hub", course)
                for name in plan.instructors:
                    add_staff(
                        connection, now_ms, "hub", plan.course, name, "instructor"
                    )
                token = register(connection, now_ms, "hub", GRADER)
        finally:
            database.close()
    except HubError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(f"{token}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
