"""All that a course has, a JSON object a line; and its sources as a zip."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import BinaryIO

import msgspec
from sqlalchemy import ColumnElement, Connection, Table, select

from warpbook_hub.course.courses import course
from warpbook_hub.database.tables import (
    APPEALS,
    AUDIT,
    AUDIT_DETAILS,
    BULK_ACTIONS,
    CODE_QUESTIONS,
    COMMENTS,
    COMPETITIONS,
    COURSES,
    EXTENSIONS,
    FINAL_JOBS,
    FINALS,
    JOBS,
    MEMBERSHIPS,
    OVERRIDES,
    PEOPLE,
    PUBLICATIONS,
    RESULTS,
    RUBRIC_POINTS,
    SECTIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    TEAM_MEMBERS,
    TEAMS,
    WINDOWS,
)

#: columns whose texts are JSON
_JSON = ("scheme", "rubric", "facts", "detail", "ai_log", "question")


#: of sources by their lab's language; of all others it is Python's
_SUFFIXES = {"cuda": ".cu"}


def json_lines(connection: Connection, course_id: str) -> Iterator[bytes]:
    """Give people, labs, submissions (without sources), results and decisions.

    Pseudonyms of competitions are left out: they are their learners' own.

    Raises:
        NotFound: there is no such course.
    """
    course(connection, course_id)
    labs = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    work = select(SUBMISSIONS.c.id).where(SUBMISSIONS.c.publication.in_(labs))
    done = select(RESULTS.c.job).where(RESULTS.c.submission.in_(work))
    noted = select(AUDIT.c.number).where(AUDIT.c.course == course_id)
    finals = select(FINALS.c.id).where(FINALS.c.publication.in_(labs))
    people = select(MEMBERSHIPS.c.person).where(MEMBERSHIPS.c.course == course_id)
    parts: list[tuple[str, Table, ColumnElement[bool], tuple[str, ...]]] = [
        ("course", COURSES, COURSES.c.id == course_id, ()),
        ("section", SECTIONS, SECTIONS.c.course == course_id, ()),
        ("person", PEOPLE, PEOPLE.c.id.in_(people), ()),
        ("membership", MEMBERSHIPS, MEMBERSHIPS.c.course == course_id, ()),
        ("team", TEAMS, TEAMS.c.course == course_id, ()),
        ("team member", TEAM_MEMBERS, TEAM_MEMBERS.c.course == course_id, ()),
        (
            "publication",
            PUBLICATIONS,
            PUBLICATIONS.c.course == course_id,
            ("reference",),
        ),
        ("window", WINDOWS, WINDOWS.c.publication.in_(labs), ()),
        ("extension", EXTENSIONS, EXTENSIONS.c.publication.in_(labs), ()),
        # what hidden cases are drawn with stays here
        ("submission", SUBMISSIONS, SUBMISSIONS.c.id.in_(work), ("source", "seed")),
        (
            "submission member",
            SUBMISSION_MEMBERS,
            SUBMISSION_MEMBERS.c.submission.in_(work),
            (),
        ),
        ("job", JOBS, JOBS.c.submission.in_(work), ()),
        ("result", RESULTS, RESULTS.c.submission.in_(work), ("evidence",)),
        ("competition", COMPETITIONS, COMPETITIONS.c.publication.in_(labs), ()),
        ("final", FINALS, FINALS.c.publication.in_(labs), ()),
        ("final job", FINAL_JOBS, FINAL_JOBS.c.final.in_(finals), ()),
        ("override", OVERRIDES, OVERRIDES.c.publication.in_(labs), ()),
        ("appeal", APPEALS, APPEALS.c.job.in_(done), ()),
        ("comment", COMMENTS, COMMENTS.c.submission.in_(work), ()),
        ("rubric points", RUBRIC_POINTS, RUBRIC_POINTS.c.submission.in_(work), ()),
        ("code question", CODE_QUESTIONS, CODE_QUESTIONS.c.submission.in_(work), ()),
        ("bulk action", BULK_ACTIONS, BULK_ACTIONS.c.course == course_id, ()),
        ("audit", AUDIT, AUDIT.c.course == course_id, ()),
        ("audit detail", AUDIT_DETAILS, AUDIT_DETAILS.c.number.in_(noted), ()),
    ]
    for kind, table, which, left_out in parts:
        columns = [column for column in table.c if column.name not in left_out]
        for row in connection.execute(select(*columns).where(which)).mappings():
            values = {name: _plain(name, value) for name, value in row.items()}
            yield msgspec.json.encode({"kind": kind, **values}) + b"\n"


def _plain(name: str, value: object) -> object:
    """Give JSON that is kept as a text as what it is."""
    if name in _JSON and isinstance(value, str):
        return msgspec.Raw(value.encode())
    return value


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
