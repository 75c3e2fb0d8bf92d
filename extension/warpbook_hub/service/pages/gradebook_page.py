"""The class as staff see it: the gradebook, each learner at one lab, the queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from warpbook.hub_protocol import Nothing
from warpbook_hub.course.courses import Course, Member, members
from warpbook_hub.course.publications import Publication, publications
from warpbook_hub.course.windows import extended_after_reference
from warpbook_hub.queue import control
from warpbook_hub.queue.graders import graders
from warpbook_hub.queue.overview import queue
from warpbook_hub.rules.totals import Total, rules_in_words, total
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.gradebook import learners, name_of
from warpbook_hub.service.pages.words import points
from warpbook_hub.service.parameters import ClassQuery, SectionQuery
from warpbook_hub.service.row_view import STATES, row_view
from warpbook_hub.service.service import Service
from warpbook_hub.work.bulk import last_orders
from warpbook_hub.work.marks import LabWork

#: states that a cell may have, beside those that other words tell
CELL_STATES = ("graded", "waits", "parked", "not graded", "not handed in", "excused")
FACTS = ("late", "set by hand", "extended after the reference")
#: what can be done
ACTIONS = {
    "extend": "Extend the due date",
    "regrade": "Regrade",
    "retry": "Retry what is parked",
    "excuse": "Excuse",
    "count": "Excuse no more",
    "hide": "Hide the marks of these labs",
    "release": "Release the marks of these labs",
}
OF_INSTRUCTORS = ("hide", "release")


def gradebook_page(admitted: Admitted, given: SectionQuery) -> dict[str, Any]:
    """Show the marks of all learners whom somebody decides about."""
    connection, course = admitted.connection, admitted.course
    people = learners(admitted)
    sections = sorted({one.section for one in people.values()})
    shown = {
        person: one
        for person, one in people.items()
        if given.section in ("", one.section)
    }
    labs = [lab for lab in publications(connection, course.id) if not lab.is_withdrawn]
    orders = last_orders(connection, course.id)
    return {
        "people": shown,
        "after_reference": extended_after_reference(connection, course.id),
        "labs": labs,
        "section": given.section,
        "sections": sections,
        "states": (*CELL_STATES, *FACTS),
        "actions": ACTIONS,
        "choices": [
            name
            for name in ACTIONS
            if admitted.is_instructor or name not in OF_INSTRUCTORS
        ],
        "rules": rules_in_words(
            {lab.title: lab.counts for lab in labs}, course.drop_lowest
        ),
        "orders": [
            (one, admitted.is_instructor or one.made_by == admitted.actor)
            for one in orders
        ],
        "names": {one.person: one.username for one in members(connection, course.id)},
        "name_of": name_of,
    }


async def with_marks(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the rows; marks are kept in memory."""
    course: Course = values["course"]
    work = await service.live.work(service, course.id, values["people"])
    rows = rows_of(values["people"], work, course.drop_lowest)
    most = {
        lab: cell.mark.lab_points for row in rows for lab, cell in row.cells.items()
    }
    of = [lab.id for lab in values["labs"]], most, values["after_reference"]
    return {**values, "rows": rows, "most": most, "cells": lambda row: cells(row, *of)}


class Row(NamedTuple):
    """A learner's marks."""

    member: Member
    #: by publication
    cells: Mapping[str, LabWork]
    total: Total


def rows_of(
    people: Mapping[str, Member],
    work: Mapping[str, Sequence[LabWork]],
    drop_lowest: int,
) -> list[Row]:
    """Give the rows of some learners, in their order.

    Args:
        people: by their ids.
        work: of all of them.
        drop_lowest: of the course.
    """
    rows = []
    for person, member in people.items():
        theirs = work.get(person, ())
        counted = total([one.mark for one in theirs], drop_lowest)
        rows.append(Row(member, {one.mark.publication: one for one in theirs}, counted))
    return rows


def cells(
    row: Row,
    labs: Sequence[str],
    most: Mapping[str, float],
    after_reference: Collection[tuple[str, str]],
) -> str:
    """Write a learner's cells as HTML: numbers, ids and words of the hub alone.

    Args:
        row: the learner's.
        labs: publications that are columns.
        most: their points, which the heads of the columns tell.
        after_reference: those of the publications and people whose extension was.
    """
    written = []
    for lab in labs:
        one = row.cells.get(lab)
        if one is None:
            written.append('<td class="none">not for them</td>')
            continue
        mark = one.mark
        is_after = (lab, mark.person) in after_reference
        shown = mark.state if mark.points is None else points(mark.points)
        if one.submission:
            shown = f'<a href="submissions/{one.submission}" tabindex="-1">{shown}</a>'
        told = more(one, most[lab], lab in row.total.dropped, is_after)
        of = f"<small>{told}</small>" if told else ""
        written.append(f'<td class="{kinds(one, is_after)}">{shown}{of}</td>')
    return "".join(written)


def kinds(one: LabWork, is_after_reference: bool) -> str:
    """Give the classes of a cell: its state, and what else is true of it."""
    mark = one.mark
    facts = [mark.state, one.in_queue if one.in_queue != mark.state else ""]
    if mark.points is not None and mark.computed.late_hours:
        facts.append("late")
    if mark.override is not None:
        facts.append("set by hand")
    if is_after_reference:
        facts.append("extended after the reference")
    return " ".join(fact.replace(" ", "-") for fact in facts if fact)


def more(
    one: LabWork, most_points: float, is_dropped: bool, is_after_reference: bool
) -> str:
    """Say in a few words what else there is to know of a cell.

    Args:
        one: what is in it.
        most_points: that the head of its column tells.
        is_dropped: it is left out of the total.
        is_after_reference: its extension was granted after they could see that.
    """
    mark = one.mark
    told = []
    if mark.points is not None and mark.most_points != most_points:
        told.append(f"of {points(mark.most_points)}")
    if mark.override is not None:
        told.append("set by hand")
    elif mark.points is not None and mark.computed.late_hours:
        told.append(f"{mark.computed.late_hours} h late")
    if is_after_reference:
        told.append("extended after the reference")
    if one.in_queue and one.in_queue != mark.state:
        told.append(one.in_queue)
    if is_dropped:
        told.append("left out")
    if one.attempts:
        told.append(f"{one.attempts} attempt{'s' if one.attempts > 1 else ''}")
    return ", ".join(told)


def class_page(admitted: Admitted, given: ClassQuery) -> dict[str, Any]:
    """Choose the lab that the class is shown for; the rows come after."""
    connection, course = admitted.connection, admitted.course.id
    labs = [lab for lab in publications(connection, course) if not lab.is_withdrawn]
    people = members(connection, course)
    section = given.section
    if not admitted.is_instructor:
        own = [one.section for one in people if one.person == admitted.viewer.person]
        section = own[0] if own else section
    chosen = next((lab for lab in labs if lab.id == given.lab), None)
    return {
        "labs": labs,
        "lab": chosen or _opened_last(labs, admitted.now_ms),
        "section": section,
        "sections": sorted({one.section for one in people if one.role == "learner"}),
        "states": STATES,
    }


async def with_rows(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the rows, which are kept in memory."""
    lab = values["lab"]
    rows = await service.live.rows(service, values["course"].id)
    views = [
        row_view(row, lab.id if lab is not None else "")
        for row in rows
        if values["section"] in ("", row.section)
    ]
    return {**values, "rows": views}


def queue_page(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Show a course's jobs, and counts of the other courses' and of what grades."""
    connection, course = admitted.connection, admitted.course.id
    jobs = queue(connection, admitted.now_ms)
    heard = [
        grader
        for grader in graders(connection, admitted.now_ms)
        if grader.is_heard and grader.state == "active"
    ]
    return {
        "jobs": [job for job in jobs if job.course == course],
        "others": Counter(job.state for job in jobs if job.course != course),
        "graders": len(heard),
        "cpu_slots": sum(grader.cpu_slots for grader in heard),
        "gpus": sum(len(grader.devices) for grader in heard),
        "labs": {lab.id: lab for lab in publications(connection, course)},
        "paused": control.pause_of(connection, course),
        "all_paused": control.pause_of(connection),
    }


def _opened_last(labs: list[Publication], now_ms: int) -> Publication | None:
    """Give the lab that people most likely work at."""
    opened = [
        (min(window.opens_ms for window in lab.windows.values()), lab.lab, lab)
        for lab in labs
        if any(window.opens_ms <= now_ms for window in lab.windows.values())
    ]
    if opened:
        return max(opened, key=lambda one: one[:2])[2]
    return labs[0] if labs else None
