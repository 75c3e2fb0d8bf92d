"""The gradebook: learners by labs, and what can be done to a selection of it."""

from __future__ import annotations

from typing import Any

from warpbook_hub.course.courses import Course, members
from warpbook_hub.course.publications import publications
from warpbook_hub.course.windows import extended_after_reference
from warpbook_hub.rules.totals import rules_in_words
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.gradebook import learners, name_of
from warpbook_hub.service.pages.words import points
from warpbook_hub.service.parameters import SectionQuery
from warpbook_hub.service.service import Service
from warpbook_hub.work.bulk import last_orders
from warpbook_hub.work.gradebook import Cell, gradebook, work_of_all

#: states that a cell may have, beside those that other words tell
STATES = ("graded", "waits", "parked", "not graded", "not handed in", "excused")
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
        "work": work_of_all(connection, course.id),
        "after_reference": extended_after_reference(connection, course.id),
        "labs": labs,
        "section": given.section,
        "sections": sections,
        "states": (*STATES, *FACTS),
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
        "kinds": kinds,
        "more": more,
    }


async def with_marks(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    """Add the rows; marks are kept in memory."""
    course: Course = values["course"]
    marks = await service.live.marks(service, course.id, values["people"])
    of = values["work"], values["after_reference"]
    rows = gradebook(values["people"], marks, *of, course.drop_lowest)
    most = {
        lab: cell.mark.lab_points for row in rows for lab, cell in row.cells.items()
    }
    return {**values, "rows": rows, "most": most}


def kinds(cell: Cell) -> str:
    """Give the classes of a cell: its state, and what else is true of it."""
    mark = cell.mark
    facts = {
        mark.state,
        cell.in_queue,
        "late" if mark.points is not None and mark.computed.late_hours else "",
        "set by hand" if mark.override is not None else "",
        "extended after the reference" if cell.is_after_reference else "",
    }
    return " ".join(sorted(fact.replace(" ", "-") for fact in facts if fact))


def more(cell: Cell, most_points: float, dropped: tuple[str, ...]) -> str:
    """Say in a few words what else there is to know of a cell.

    Args:
        most_points: that the head of its column tells.
    """
    mark = cell.mark
    told = []
    if mark.points is not None and mark.most_points != most_points:
        told.append(f"of {points(mark.most_points)}")
    if mark.override is not None:
        told.append("set by hand")
    elif mark.points is not None and mark.computed.late_hours:
        told.append(f"{mark.computed.late_hours} h late")
    if cell.is_after_reference:
        told.append("extended after the reference")
    if cell.in_queue and cell.in_queue != mark.state:
        told.append(cell.in_queue)
    if mark.publication in dropped:
        told.append("left out")
    if cell.attempts:
        told.append(f"{cell.attempts} attempt{'s' if cell.attempts > 1 else ''}")
    return ", ".join(told)
