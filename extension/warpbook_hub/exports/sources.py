"""All sources of a course as a zip."""

from __future__ import annotations

import zipfile
from datetime import datetime, timezone
from typing import BinaryIO

from sqlalchemy import Connection, select

from warpbook_hub.course.courses import course
from warpbook_hub.database.tables import PEOPLE, PUBLICATIONS, SUBMISSIONS

#: of sources by their lab's language; of all others it is Python's
_SUFFIXES = {"cuda": ".cu"}


def write_sources(connection: Connection, course_id: str, file: BinaryIO) -> int:
    """Write every source as `<lab>/<user name>/<number>-<submission>.<suffix>`.

    Returns:
        How many.

    Raises:
        NotFound: there is no such course.
    """
    course(connection, course_id)
    rows = connection.execute(
        select(
            PUBLICATIONS.c.lab,
            PUBLICATIONS.c.language,
            PEOPLE.c.username,
            SUBMISSIONS.c.id,
            SUBMISSIONS.c.number,
            SUBMISSIONS.c.received_ms,
            SUBMISSIONS.c.source,
        )
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(PEOPLE, PEOPLE.c.id == SUBMISSIONS.c.person)
        .where(PUBLICATIONS.c.course == course_id)
        .order_by(PUBLICATIONS.c.lab, PEOPLE.c.username, SUBMISSIONS.c.number)
    )
    written: list[str] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in rows:
            # names of people and labs were checked when they came in: none has a slash
            name = f"{row.number:03d}-{row.id}{_SUFFIXES.get(row.language, '.py')}"
            when = datetime.fromtimestamp(row.received_ms / 1000, timezone.utc)
            entry = zipfile.ZipInfo(
                f"{row.lab}/{row.username}/{name}", when.timetuple()[:6]
            )
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, row.source)
            written.append(row.id)
    return len(written)
