"""Pages with which instructors run a course."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from warpbook.hub_protocol import Nothing
from warpbook_hub import audit
from warpbook_hub.course.courses import members
from warpbook_hub.course.extensions import extension
from warpbook_hub.course.publications import (
    ASKED_LANGUAGES,
    publications,
    reference_shown,
)
from warpbook_hub.course.versions import changed_files, kept_files
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import JOBS, outside_finals
from warpbook_hub.errors import NotFound
from warpbook_hub.queue.coverage import Coverage
from warpbook_hub.queue.entries import has_gpu
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.rules.points import MEASURES, PointScheme
from warpbook_hub.rules.visibility import may_decide_work
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.lab_texts import lab_of, labs, version_files
from warpbook_hub.service.pages.log_words import log_lines
from warpbook_hub.service.parameters import LabQuery, LogQuery
from warpbook_hub.work.appeals import appeals
from warpbook_hub.work.decisions import overrides
from warpbook_hub.work.marks import marks_of, total_of
from warpbook_hub.work.results import standing
from warpbook_hub.work.submissions import sections_of, submissions_of

_WEEK_MS = 7 * 24 * HOUR_MS
_ENTRIES = 200


def people_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    everybody = members(admitted.connection, admitted.course.id)
    return {
        "members": everybody,
        "sections": sorted({one.section for one in everybody}),
    }


def person_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show one learner: marks, dates, submissions, and what can be decided."""
    connection, person = admitted.connection, admitted.person
    everybody = members(connection, admitted.course.id)
    shown = next((one for one in everybody if one.person == person), None)
    if shown is None:
        raise NotFound("There is no such person in this course.")
    of_labs = {lab.id: lab for lab in publications(connection, admitted.course.id)}
    work = []
    marks = marks_of(connection, admitted.now_ms, admitted.course.id, person)
    for mark in marks:
        handed_in = submissions_of(connection, mark.publication, person)
        work.append(
            {
                "lab": of_labs[mark.publication],
                "mark": mark,
                "window": window_of(connection, mark.publication, person),
                "overrides": overrides(connection, mark.publication, person),
                "extension": extension(connection, mark.publication, person),
                "reference_ms": reference_shown(
                    connection, admitted.now_ms, mark.publication
                ),
                "submissions": [
                    (one, standing(connection, one.id)) for one in reversed(handed_in)
                ],
            }
        )
    names = {one.person: one.username for one in everybody}
    total = total_of(marks, of_labs.values(), admitted.course.drop_lowest)
    return {"member": shown, "work": work, "names": names, "total": total}


def catalogue_page(admitted: Admitted, given: LabQuery) -> dict[str, Any]:
    """Show a form for a lab that is published anew, or all that can be."""
    published = {
        lab.lab for lab in publications(admitted.connection, admitted.course.id)
    }
    chosen = lab_of(given.catalogue) if given.catalogue else None
    coverage = Coverage(admitted.connection, admitted.now_ms)
    catalogue = labs()
    return {
        "catalogue": catalogue,
        "covers": {lab.id: coverage.of(lab.id) for lab in catalogue},
        "cover": None if chosen is None else coverage.of(chosen.id),
        "published": published,
        "chosen": chosen,
        "lab": None,
        "scheme": PointScheme(),
        "windows": [
            (
                "",
                admitted.now_ms,
                admitted.now_ms + _WEEK_MS,
                admitted.now_ms + _WEEK_MS,
            )
        ],
        **_form(admitted),
    }


def settings_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a form for how a lab is published."""
    lab = admitted.lab
    return {
        "catalogue": [],
        "covers": {},
        "cover": Coverage(admitted.connection, admitted.now_ms).of(lab.lab)
        if lab.takes_submissions
        else None,
        "published": set(),
        "chosen": lab_of(lab.lab),
        "lab": lab,
        "scheme": lab.scheme,
        "windows": [
            (name, window.opens_ms, window.due_ms, window.closes_ms)
            for name, window in sorted(lab.windows.items())
        ],
        **_form(admitted),
    }


def version_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show what has changed in a lab since it was published."""
    connection, lab = admitted.connection, admitted.lab
    before = kept_files(connection, lab.id)
    states = select(JOBS.c.state, func.count()).group_by(JOBS.c.state)
    of_lab = states.where(JOBS.c.publication == lab.id, outside_finals())
    return {
        "lab": lab,
        "cover": Coverage(connection, admitted.now_ms).of(lab.lab),
        "has_files": bool(before),
        "changes": changed_files(before, version_files(lab.lab)),
        "jobs": {state: count for state, count in connection.execute(of_lab)},
    }


def appeals_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show the appeals that somebody may answer."""
    connection = admitted.connection
    everybody = {one.person: one for one in members(connection, admitted.course.id)}
    of_course = appeals(connection, admitted.course.id)
    sections = sections_of(connection, [appeal.submission for appeal in of_course])
    # the same rule as for answering
    shown = [
        appeal
        for appeal in of_course
        if appeal.person in everybody
        and may_decide_work(admitted.viewer, sections[appeal.submission])
    ]
    return {
        "open": [appeal for appeal in shown if not appeal.decision],
        "answered": [appeal for appeal in reversed(shown) if appeal.decision],
        "people": everybody,
    }


def log_page(admitted: Admitted, given: LogQuery) -> dict[str, Any]:
    """Show the audit log, the newest first."""
    return entries_before(admitted, given, admitted.course.id)


def entries_before(admitted: Admitted, given: LogQuery, course: str) -> dict[str, Any]:
    """Give entries of the log, of a course or of the hub, with where older ones are."""
    connection = admitted.connection
    before = given.before or audit.last_number(connection) + 1
    after = max(0, before - _ENTRIES - 1)
    entries = [
        entry
        for entry in audit.entries(connection, after, _ENTRIES, given.subject, course)
        if entry.number < before
    ]
    return {
        "entries": log_lines(connection, entries[::-1], course),
        "older": after + 1 if after else 0,
        "subject": given.subject,
    }


def data_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show exports and the course's settings."""
    of_course = publications(admitted.connection, admitted.course.id)
    return {
        "settings": admitted.course,
        "labs": [lab for lab in of_course if not lab.is_withdrawn],
    }


def _form(admitted: Admitted) -> dict[str, Any]:
    everybody = members(admitted.connection, admitted.course.id)
    return {
        "sections": sorted({one.section for one in everybody}),
        "measures": MEASURES,
        "asked_languages": ASKED_LANGUAGES,
        "has_gpu": has_gpu(admitted.connection),
    }
