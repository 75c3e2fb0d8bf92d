"""Pages as a learner sees them, for staff: one of the course, or one who has just come.

Nothing can be done there, and each page that is looked at is in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select

from warpbook.hub_protocol import Nothing
from warpbook_hub import audit
from warpbook_hub.course.courses import ensure_person, viewer
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import MEMBERSHIPS, PEOPLE, SECTIONS
from warpbook_hub.errors import NotFound
from warpbook_hub.rules.visibility import may_see_lab, may_see_work
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.lab_texts import text_html
from warpbook_hub.service.pages.learner_pages import (
    lab_page,
    labs_page,
    submission_page,
)
from warpbook_hub.work.submissions import sections_of

_PAGES = {"labs": labs_page, "lab": lab_page, "submission": submission_page}


def labs_as(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the labs of a course as a learner sees them."""
    return _as_person(admitted, "labs")


def lab_as(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a lab as a learner sees it."""
    return _as_person(admitted, "lab")


def submission_as(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a submission as a learner sees it."""
    return _as_person(admitted, "submission")


def labs_as_new(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the labs of a course as somebody sees them who has just come."""
    return _as_new(admitted, "labs")


def lab_as_new(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a lab as somebody sees it who has just come."""
    return _as_new(admitted, "lab")


def _as_person(admitted: Admitted, page: str) -> dict[str, Any]:
    query = select(PEOPLE.c.username).where(PEOPLE.c.id == admitted.person)
    username = str(admitted.connection.execute(query).scalar_one())
    home = f"courses/{admitted.course.id}/as/{admitted.person}"
    _note(admitted, admitted.person, page)
    return _seen(admitted, username, page, home)


def _as_new(admitted: Admitted, page: str) -> dict[str, Any]:
    connection = admitted.connection
    query = select(SECTIONS.c.name).where(
        SECTIONS.c.course == admitted.course.id, SECTIONS.c.id == admitted.section
    )
    name = connection.execute(query).scalar()
    if name is None:
        raise NotFound("There is no such section in this course.")
    _note(admitted, admitted.section, page)
    home = f"courses/{admitted.course.id}/as-new/{admitted.section}"
    with _somebody_new(connection, admitted) as username:
        values = _seen(admitted, username, page, home)
    return {**values, "seen_as": f"a new learner of the section {name}"}


@contextmanager
def _somebody_new(connection: Connection, admitted: Admitted) -> Iterator[str]:
    """Have somebody on the roster while a page is computed, for nobody else to see."""
    # no log-in has a space
    username = f"new in {admitted.section}"
    with connection.begin_nested() as savepoint:
        connection.execute(
            insert(MEMBERSHIPS).values(
                course=admitted.course.id,
                person=ensure_person(connection, admitted.now_ms, username),
                section=admitted.section,
                role="learner",
            )
        )
        yield username
        savepoint.rollback()


def _note(admitted: Admitted, subject: str, page: str) -> None:
    audit.note(
        *admitted.act, "seen as a learner", subject, {"page": page}, admitted.course.id
    )


def _seen(admitted: Admitted, username: str, page: str, home: str) -> dict[str, Any]:
    connection = admitted.connection
    who = viewer(connection, admitted.course.id, username)
    if who.role != "learner":
        raise NotFound("This person is no learner of the course.")
    if admitted.given_submission is not None:
        work = admitted.submission
        sections = sections_of(connection, [work.id])[work.id]
        if not may_see_work(who, work.members, sections):
            raise NotFound("This learner has no such submission.")
    if admitted.given_lab is not None:
        window = window_of(connection, admitted.lab.id, who.person)
        if not may_see_lab(who, window, admitted.now_ms):
            raise NotFound("A learner does not see this lab now.")
    as_learner = replace(admitted, username=username, given_viewer=who, operator="")
    values = _PAGES[page](as_learner, Nothing())
    if page == "lab":
        pictures = f"../../../labs/{admitted.lab.id}/pictures/"
        values["text"] = text_html(admitted.lab.lab, pictures)
    return {
        **values,
        "seen_as": username,
        "home": home,
        "is_staff": False,
        "is_instructor": False,
    }
