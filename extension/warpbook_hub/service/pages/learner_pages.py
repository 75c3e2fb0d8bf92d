"""Pages that everybody of a course has: its labs, one lab, one submission."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, insert, select

from warpbook.hub_protocol import Nothing
from warpbook_hub import audit
from warpbook_hub.course.courses import ensure_person, members, viewer
from warpbook_hub.course.extensions import extensions
from warpbook_hub.course.publications import policy_now, reference, reference_from
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import MEMBERSHIPS, PEOPLE, SECTIONS, SUBMISSIONS
from warpbook_hub.errors import NotFound
from warpbook_hub.notices import inbox
from warpbook_hub.notices.smtp import MAIL
from warpbook_hub.queue.coverage import Coverage
from warpbook_hub.queue.overview import place
from warpbook_hub.rules.visibility import (
    may_decide_work,
    may_see_lab,
    may_see_reference,
    may_see_work,
)
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.learner import (
    asked_questions,
    own_courses,
    own_labs,
    own_total,
    person_asking,
)
from warpbook_hub.service.lab_texts import hint_count, lab_of, starter, text_html
from warpbook_hub.service.pages.competition_page import competition_card
from warpbook_hub.work.appeals import appeals, appeals_until
from warpbook_hub.work.feedback import comments
from warpbook_hub.work.results import given_points, results
from warpbook_hub.work.submissions import (
    receipt,
    reported_ai_log,
    sections_of,
    submissions_of,
)


def courses_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the courses of a person; of one course, its labs."""
    own = own_courses(admitted, Nothing())
    if len(own) == 1:
        return {"go": f"courses/{own[0].id}"}
    return {"courses": own}


def notices_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show what a person was told, and a form for what they want as mail."""
    connection, person = admitted.connection, person_asking(admitted)
    return {
        "notices": inbox.notices(connection, person),
        "choice": inbox.choice_of(connection, person),
        "names_address": inbox.may_name_address(connection, person),
        "has_mail": MAIL in os.environ,
    }


def labs_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    sections = select(SECTIONS.c.id, SECTIONS.c.name).order_by(SECTIONS.c.name)
    of_course = sections.where(SECTIONS.c.course == admitted.course.id)
    return {
        "labs": own_labs(admitted, Nothing()),
        "sections": admitted.connection.execute(of_course).all(),
        "total": own_total(admitted, Nothing()),
    }


def lab_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a lab: what it asks, a place to hand in, and what was handed in."""
    connection, lab, person = admitted.connection, admitted.lab, admitted.viewer.person
    own = [of for of in own_labs(admitted, Nothing()) if of.id == lab.id]
    work = submissions_of(connection, lab.id, person)
    history = [(one, admitted.standing(one.id)) for one in reversed(work)]
    from_ms = reference_from(connection, lab.id)
    shows_reference = may_see_reference(admitted.viewer, from_ms, admitted.now_ms)
    pictures = f"{lab.id}/pictures/"
    people = {
        member.person: member for member in members(connection, admitted.course.id)
    }
    return {
        "lab": lab,
        "own": own[0] if own else None,
        "window": window_of(connection, lab.id, person),
        "ai_policy": policy_now(connection, admitted.now_ms, admitted.course, lab),
        "history": history,
        "waiting": next((one.id for one, now in history if now.state == "waits"), ""),
        "about": lab_of(lab.lab),
        "text": text_html(lab.lab, pictures),
        "hints": hint_count(lab.lab),
        "starter": starter(lab.lab),
        "reference": reference(connection, lab.id) if shows_reference else "",
        "reference_from_ms": from_ms,
        "extensions": extensions(connection, lab.id) if admitted.is_instructor else [],
        "people": people,
        "competition": competition_card(admitted),
        "cover": Coverage(connection, admitted.now_ms).of(lab.lab)
        if admitted.is_instructor and lab.takes_submissions
        else None,
    }


def submission_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a submission with its receipt, its place or result, and its history."""
    connection, submission = admitted.connection, admitted.submission
    now = admitted.standing(submission.id)
    all_results = results(connection, submission.id) if admitted.sees_marks else []
    counts = next(
        (one for one in all_results if now.result and one.job == now.result.job), None
    )
    own_appeals = [
        appeal
        for appeal in appeals(connection, admitted.course.id)
        if appeal.submission == submission.id and admitted.sees_marks
    ]
    work = submissions_of(connection, admitted.lab.id, submission.person)
    sections = sections_of(connection, [submission.id])[submission.id]
    people = {
        member.person: member for member in members(connection, admitted.course.id)
    }
    appeal_until_ms = 0
    if counts is not None:
        appeal_until_ms = appeals_until(connection, counts.job)
    return {
        "lab": admitted.lab,
        "submission": submission,
        "receipt": receipt(connection, submission.id),
        "ai_log": reported_ai_log(connection, submission.id),
        "questions": asked_questions(admitted, Nothing()),
        "standing": now,
        "place": None
        if now.state == "hidden"
        else place(connection, admitted.now_ms, submission.id),
        "counts": counts,
        "results": all_results,
        "appeals": own_appeals,
        "may_appeal": counts is not None
        and admitted.viewer.person in submission.members
        and admitted.now_ms <= appeal_until_ms
        and all(appeal.job != counts.job for appeal in own_appeals),
        "appeal_until_ms": appeal_until_ms,
        "is_own": admitted.viewer.person in submission.members,
        "names": {one.person: one.username for one in people.values()},
        **_feedback(admitted),
        "decides": may_decide_work(admitted.viewer, sections),
        "author": people.get(submission.person),
        "team": [people[one] for one in submission.members if one in people],
        "history": [(one, admitted.standing(one.id)) for one in reversed(work)],
    }


def _feedback(admitted: Admitted) -> dict[str, Any]:
    """Give the comments by line, and the points of the rubric, once they are shown."""
    connection, work = admitted.connection, admitted.submission.id
    if not admitted.sees_marks:
        return {"comments": {}, "given": {}}
    by_line = groupby(comments(connection, work), lambda one: one.line)
    given = given_points(connection, SUBMISSIONS.c.id == work)
    return {
        "comments": {line: list(of_line) for line, of_line in by_line},
        "given": given.get(work, {}),
    }


#: what staff see as a learner does; nothing can be done there, and each look is logged
_PAGES = {"labs": labs_page, "lab": lab_page, "submission": submission_page}


def labs_as(admitted: Admitted, _: Nothing) -> dict[str, Any]:
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
