"""A course for the next term: labs, rules and staff, and nobody's work."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec import structs
from sqlalchemy import update

from tests.hub.core.course import Classroom
from warpbook_hub.course.courses import Course, change_course, course, members
from warpbook_hub.course.next_term import Term, copy_course
from warpbook_hub.course.publications import publications, publish, withdraw
from warpbook_hub.database.tables import PUBLICATIONS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.rules.lateness import Window

DATABASES = ("sqlite", "postgres")
ZURICH = ZoneInfo("Europe/Zurich")


def at_ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=ZURICH).timestamp()) * 1000


def test_labs_rules_and_staff_come_along_and_dates_keep_their_hour(
    room: Classroom,
) -> None:
    window = Window(
        at_ms(2026, 9, 1, 8), at_ms(2026, 9, 30, 23, 59), at_ms(2026, 10, 7)
    )
    with room.database.write() as connection:
        who = (connection, room.now_ms, "hub")
        settings = Course("gpu101", "GPU programming", 12, 3, 48)
        change_course(*who, settings)
        (old,) = publications(connection, "gpu101")
        publish(*who, structs.replace(old, windows={"monday": window}))
        rules = {"weight": 2.0, "is_bonus": 1, "hidden_ms": 1, "reference": "// secret"}
        connection.execute(update(PUBLICATIONS).values(**rules))
        publish(
            *who, structs.replace(old, windows={"": window}, lab="gone", title="Gone")
        )
        gone = next(
            lab for lab in publications(connection, "gpu101") if lab.lab == "gone"
        )
        withdraw(*who, gone.id, "not this year")
    room.submit("ada")
    room.grade(room.grader())
    with room.database.write() as connection:
        # 23 weeks: from summer time to winter time
        term = Term("gpu102", "GPU programming, spring", 161, "Europe/Zurich")
        told = copy_course(connection, room.now_ms, room.instructor, "gpu101", term)
        (lab,) = publications(connection, "gpu102")
        begun = course(connection, "gpu102")
        people = members(connection, "gpu102")
        row = connection.execute(
            PUBLICATIONS.select().where(PUBLICATIONS.c.id == lab.id)
        ).one()
    assert told.labs == ("Vector add: monday 2027-02-09 08:00–2027-03-10 23:59",)
    assert lab.windows["monday"].due_ms == at_ms(2027, 3, 10, 23, 59)
    assert lab.windows["monday"].opens_ms == at_ms(2027, 2, 9, 8)
    assert (row.weight, row.is_bonus, row.hidden_ms, row.reference) == (2, 1, None, "")
    assert lab.lab_digest == "" and lab.scheme == old.scheme
    assert (begun.late_budget_h, begun.appeal_window_h) == (12, 48)
    assert [(one.username, one.role) for one in people] == [("grace", "instructor")]
    assert told.sections == ("main", "monday", "tuesday")


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        (Term("gpu101", "Again", 7, "UTC"), Conflict),
        (Term("GPU 102", "Again", 7, "UTC"), BadRequest),
        (Term("gpu102", "Again", 7, "../../etc/passwd"), BadRequest),
        (Term("gpu102", "Again", 7, "Nowhere/Else"), BadRequest),
        (Term("gpu102", "Again", 10**9, "UTC"), BadRequest),
    ],
)
def test_what_can_not_be_begun_is_refused(
    room: Classroom, term: Term, problem: type[Exception]
) -> None:
    with pytest.raises(problem), room.database.write() as connection:
        copy_course(connection, room.now_ms, "hub", "gpu101", term)
