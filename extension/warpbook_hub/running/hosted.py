"""`python -m warpbook_hub.running.hosted`: the course service of another's JupyterHub.

`warpbook hub config` names it in a JupyterHub's configuration. It has the course and
its instructors in the database, and then serves as `warpbook_hub.service` does, in the
same environment. An operator adds graders on the page *Hub*.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from warpbook_hub.clock import HubClock
from warpbook_hub.course.courses import Course
from warpbook_hub.database.hub_database import DATABASE, HubDatabase
from warpbook_hub.errors import HubError
from warpbook_hub.running.begin import begin_course
from warpbook_hub.service import __main__ as service


def main(arguments: Sequence[str] | None = None) -> int:
    """Begin what is not there, and serve until a signal."""
    parser = argparse.ArgumentParser(prog="python -m warpbook_hub.running.hosted")
    parser.add_argument("--course", required=True, metavar="ID")
    parser.add_argument("--title", required=True, help="of the course, as it is begun")
    parser.add_argument("--instructor", action="append", required=True, metavar="NAME")
    parser.add_argument("--operator", action="append", default=[], metavar="NAME")
    options = parser.parse_args(arguments)
    folder = Path(os.environ.get(service.DATA, ""))
    if not folder.is_absolute():
        sys.stderr.write(f"warpbook hub: {service.DATA}: not an absolute path.\n")
        return 2
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        database = HubDatabase(folder / DATABASE)
        try:
            with database.write() as connection:
                course = Course(options.course, options.title)
                now_ms = HubClock().now_ms()
                people = begin_course(
                    connection, now_ms, course, options.instructor, options.operator
                )
        finally:
            database.close()
    except (HubError, OSError) as problem:
        sys.stderr.write(f"warpbook hub: {problem}\n")
        return 1
    sys.stderr.write(f"{people}\n")
    return service.main()


if __name__ == "__main__":
    sys.exit(main())
