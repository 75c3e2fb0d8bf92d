"""The ranking in a process of its own: it takes seconds, and sources are hostile."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook_hub.course.publications import reference
from warpbook_hub.database.tables import MEMBERSHIPS, PUBLICATIONS, SUBMISSIONS
from warpbook_hub.errors import HubError
from warpbook_hub.similarity.ranking import Pair, Work, rank
from warpbook_hub.work.results import standings
from warpbook_monitors.budget import SOURCES, hold
from warpbook_monitors.python_path import NOWHERE, own_path

_WALL_S = 300.0
#: in place of a submission's id
REFERENCE = "reference"
#: works of some terms
_MOST_ELSE = 2_000


class Question(Struct, frozen=True):
    """What the process is asked."""

    works: tuple[Work, ...]
    boilerplate: tuple[str, ...] = ()
    #: compared with the works, and not with one another
    elsewhere: tuple[Work, ...] = ()
    most: int = 200


class NoRanking(HubError):
    """The ranking took too long, or too much memory."""

    http_status = 503


def works_of(connection: Connection, publication_id: str) -> list[Work]:
    """Give of each learner or team the last submission that is right, or the last."""
    of_lab = SUBMISSIONS.c.publication == publication_id
    standing = standings(connection, of_lab)
    query = select(SUBMISSIONS.c.id, SUBMISSIONS.c.party, SUBMISSIONS.c.source)
    query = query.where(of_lab, SUBMISSIONS.c.replaced_ms.is_(None))
    chosen: dict[str, tuple[bool, Work]] = {}
    for row in connection.execute(query.order_by(SUBMISSIONS.c.number)):
        counts = standing[row.id].result
        is_right = counts is not None and counts.facts.verdict == "right"
        if is_right or row.party not in chosen or not chosen[row.party][0]:
            chosen[row.party] = is_right, Work(row.id, row.party, row.source)
    return [work for _, work in chosen.values()]


def works_elsewhere(
    connection: Connection, publication_id: str, person: str
) -> list[Work]:
    """Give what the works of a lab are compared with, too.

    It is the lab's reference, and the works of the same lab in other courses, such as
    of earlier terms, of which the person is an instructor.
    """
    own = PUBLICATIONS.alias()
    courses = instructed_courses(connection, person)
    query = (
        select(PUBLICATIONS.c.id)
        .join(own, own.c.lab == PUBLICATIONS.c.lab)
        .where(own.c.id == publication_id, PUBLICATIONS.c.course != own.c.course)
        .where(PUBLICATIONS.c.course.in_(courses))
        .order_by(PUBLICATIONS.c.published_ms.desc())
    )
    works = [
        work
        for publication in connection.execute(query).scalars().all()
        for work in works_of(connection, publication)
    ]
    text = reference(connection, publication_id)
    return [*([Work(REFERENCE, REFERENCE, text)] if text else ()), *works][:_MOST_ELSE]


def instructed_courses(connection: Connection, person: str) -> set[str]:
    query = select(MEMBERSHIPS.c.course).where(
        MEMBERSHIPS.c.person == person,
        MEMBERSHIPS.c.role == "instructor",
        MEMBERSHIPS.c.hidden_ms.is_(None),
    )
    return set(connection.execute(query).scalars())


def rank_apart(
    works: Sequence[Work],
    boilerplate: Sequence[str] = (),
    elsewhere: Sequence[Work] = (),
    most: int = 200,
) -> list[Pair]:
    """Do what `ranking.rank` does in a process of its own; it blocks for seconds.

    Raises:
        NoRanking: it did not end in time, or was ended.
    """
    question = Question(tuple(works), tuple(boilerplate), tuple(elsewhere), most)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "warpbook_hub.similarity"],
            input=msgspec.json.encode(question),
            capture_output=True,
            timeout=_WALL_S,
            cwd=NOWHERE,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": own_path()},
            check=True,
        )
    except (subprocess.SubprocessError, OSError) as problem:
        raise NoRanking(
            f"The sources could not be compared ({type(problem).__name__})."
        ) from None
    return msgspec.json.decode(done.stdout, type=list[Pair])


def main() -> None:
    """Answer one question, read on stdin, on stdout."""
    os.nice(10)
    hold(SOURCES)
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    pairs = rank(
        question.works, question.boilerplate, question.elsewhere, question.most
    )
    sys.stdout.buffer.write(msgspec.json.encode(pairs))
