"""What leaves the hub: exports; and what is done with all of it: backup, erasing."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from msgspec import Struct
from sqlalchemy import select

from warpbook.hub_protocol import Nothing
from warpbook_hub import audit
from warpbook_hub.database.tables import MEMBERSHIPS
from warpbook_hub.errors import Forbidden, TooManyRequests
from warpbook_hub.exports.grades import LearnerGrades, grades, nbgrader_csv, totals_csv
from warpbook_hub.exports.records import json_lines, write_sources
from warpbook_hub.keeping.backup import back_up
from warpbook_hub.keeping.erasure import Erasure, erase
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.handlers.api_handler import Download
from warpbook_hub.service.lab_texts import starters
from warpbook_hub.service.parameters import GradesQuery, WithReason
from warpbook_hub.service.service import BACKUPS, Ranking, Service
from warpbook_hub.similarity.process import rank_apart, works_elsewhere, works_of
from warpbook_hub.similarity.ranking import Work

#: they take the disk, each as much as the database
_BACKUP_EVERY_S = 60.0


class LabWorks(Struct, frozen=True):
    """What is compared."""

    lab: str
    now_ms: int
    boilerplate: tuple[str, ...]
    works: list[Work]
    elsewhere: list[Work]


def all_grades(admitted: Admitted, given: GradesQuery) -> Download:
    learners = grades(admitted.connection, admitted.now_ms, admitted.course.id)
    return _grades_file(f"{admitted.course.id}-grades", learners, given)


def own_grades(admitted: Admitted, given: GradesQuery) -> Download:
    """Give somebody's own marks, as far as they are released."""
    learners = grades(
        admitted.connection, admitted.now_ms, admitted.course.id, admitted.viewer
    )
    return _grades_file(f"{admitted.course.id}-my-grades", learners, given)


def _grades_file(
    name: str, learners: Sequence[LearnerGrades], given: GradesQuery
) -> Download:
    file = tempfile.TemporaryFile()
    if given.layout == "json":
        file.write(msgspec.json.format(msgspec.json.encode(learners), indent=1))
        return Download(f"{name}.json", "application/json", file)
    write = nbgrader_csv if given.layout == "nbgrader" else totals_csv
    file.write(write(learners).encode("utf-8-sig" if given.mark else "utf-8"))
    return Download(f"{name}.csv", "text/csv; charset=utf-8", file)


def records(admitted: Admitted, _: Nothing) -> Download:
    """Give all of a course as JSON Lines."""
    file = tempfile.TemporaryFile()
    for line in json_lines(admitted.connection, admitted.course.id):
        file.write(line)
    return Download(f"{admitted.course.id}.jsonl", "application/x-ndjson", file)


def sources(admitted: Admitted, _: Nothing) -> Download:
    file = tempfile.TemporaryFile()
    write_sources(admitted.connection, admitted.course.id, cast(BinaryIO, file))
    return Download(f"{admitted.course.id}-sources.zip", "application/zip", file)


def erase_person(admitted: Admitted, given: WithReason) -> Erasure:
    """Erase somebody who is in no course of others."""
    elsewhere = _courses_of_person(admitted) - {admitted.course.id}
    if elsewhere and not admitted.operator:
        raise Forbidden(
            "This person is in another course, too. An operator of the hub who is an "
            "instructor here can erase them."
        )
    return erase(*admitted.act, admitted.person, given.reason)


async def scrub(service: Service, erased: Erasure) -> Erasure:
    """Leave nothing of it in files and memory."""
    service.rankings.forget()
    await service.apart(service.database.scrub)
    return erased


async def pace_backups(service: Service, given: Nothing) -> Nothing:
    """Refuse a backup that follows another.

    Raises:
        TooManyRequests: one was made a moment ago.
    """
    if time.monotonic() - service.backed_up_s < _BACKUP_EVERY_S:
        raise TooManyRequests(
            "A backup was made less than a minute ago. Take that, or try again later."
        )
    service.backed_up_s = time.monotonic()
    return given


def note_backup(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Note that a backup is made, and choose its name."""
    when = datetime.fromtimestamp(admitted.now_ms / 1000, timezone.utc)
    name = f"{when:%Y-%m-%d-%H%M%S}-{admitted.now_ms % 1000:03d}.db"
    audit.note(*admitted.act, "backup asked", "hub", {"file": name}, course="")
    return {"file": name}


async def make_backup(service: Service, named: dict[str, Any]) -> dict[str, Any]:
    """Copy the database while it is used."""
    folder = service.folder / BACKUPS

    def copy() -> int:
        folder.mkdir(mode=0o700, exist_ok=True)
        target = Path(folder, named["file"])
        back_up(service.database, target)
        return target.stat().st_size

    return {**named, "bytes": await service.apart(copy)}


def works_to_compare(admitted: Admitted, _: Nothing) -> LabWorks:
    connection, lab = admitted.connection, admitted.lab
    return LabWorks(
        lab.id,
        admitted.now_ms,
        starters(lab.lab),
        works_of(connection, lab.id),
        works_elsewhere(connection, lab.id, admitted.viewer.person),
    )


async def compare(service: Service, lab: LabWorks) -> dict[str, int]:
    """Rank the pairs of a lab, and keep the ranking for its page."""
    pairs = await service.apart(
        lambda: rank_apart(lab.works, lab.boilerplate, lab.elsewhere)
    )
    ranking = Ranking(lab.now_ms, len(lab.works), len(lab.elsewhere), pairs)
    service.rankings.keep(lab.lab, ranking)
    return {"pairs": len(pairs)}


def _courses_of_person(admitted: Admitted) -> set[str]:
    query = select(MEMBERSHIPS.c.course).where(MEMBERSHIPS.c.person == admitted.person)
    return {str(course) for course in admitted.connection.execute(query).scalars()}
