"""What is done to a selection of the gradebook: told first, then done."""

from __future__ import annotations

from msgspec import Struct

from warpbook_hub.course.courses import Member, members
from warpbook_hub.course.publications import publications, set_rubric
from warpbook_hub.errors import Forbidden, NotFound
from warpbook_hub.rules.rubric import Rubric, RubricRow
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.staff import check_decides
from warpbook_hub.service.parameters import (
    CellsOrder,
    CommentOn,
    CommentToRemove,
    OrderToUndo,
    RubricPoints,
    RubricToSet,
)
from warpbook_hub.work import bulk
from warpbook_hub.work.bulk_actions import Order
from warpbook_hub.work.feedback import comment, give_points, remove_comment

#: of a preview; the rest is counted
MOST_LINES = 300


class Line(Struct, frozen=True):
    """What happens to whom."""

    name: str
    lab: str
    words: str
    is_skipped: bool
    from_ms: int | None
    to_ms: int | None


class Told(Struct, frozen=True):
    """What an order does, or has done."""

    changed: int
    skipped: int = 0
    lines: tuple[Line, ...] = ()


def order_cells(admitted: Admitted, given: CellsOrder) -> Told:
    """Do something to a selection, or tell what would be done."""
    if given.action in ("hide", "release") and not admitted.is_instructor:
        raise Forbidden("Marks are hidden and released by instructors.")
    connection, course = admitted.connection, admitted.course.id
    labs = {lab.id: lab for lab in publications(connection, course)}
    people = learners(admitted)
    for lab, wanted in given.cells.items():
        if lab not in labs:
            raise NotFound("There is no such lab in this course.")
        if not set(wanted or ()) <= set(people):
            raise NotFound("There is no such learner of yours in this course.")
    cells = {
        lab: sorted(people if wanted is None else set(wanted))
        for lab, wanted in given.cells.items()
    }
    order = Order(given.action, cells, given.reason, given.due_ms)
    if not given.is_preview:
        at = (connection, admitted.now_ms, admitted.actor, course)
        return Told(bulk.carry_out(*at, given.request, order).changed)
    changes = bulk.plan(connection, admitted.now_ms, order)
    # what is left as it is comes last
    changes.sort(key=lambda change: change.is_skipped)
    skipped = sum(change.is_skipped for change in changes)
    lines = tuple(
        Line(
            name_of(people[change.person]) if change.person else "everybody",
            labs[change.publication].title,
            change.words,
            change.is_skipped,
            change.from_ms,
            change.to_ms,
        )
        for change in changes[:MOST_LINES]
    )
    return Told(len(changes) - skipped, skipped, lines)


def undo_order(admitted: Admitted, given: OrderToUndo) -> Told:
    """Take an order back; assistants, what they ordered themselves."""
    at = (*admitted.act, admitted.course.id)
    return Told(bulk.undo(*at, given.request, not admitted.is_instructor))


def learners(admitted: Admitted) -> dict[str, Member]:
    """Give the learners on the roster about whom somebody decides, by their ids."""
    everybody = members(admitted.connection, admitted.course.id)
    own = {one.section for one in everybody if one.person == admitted.viewer.person}
    return {
        one.person: one
        for one in everybody
        if one.role == "learner"
        and not one.is_hidden
        and (admitted.is_instructor or one.section in own)
    }


def name_of(member: Member) -> str:
    return f"{member.first_name} {member.last_name}".strip() or member.username


def make_comment(admitted: Admitted, given: CommentOn) -> dict[str, str]:
    check_decides(admitted)
    at = admitted.act
    named = comment(*at, admitted.submission.id, given.line, given.note)
    return {"comment": named}


def take_comment(admitted: Admitted, given: CommentToRemove) -> dict[str, str]:
    check_decides(admitted)
    at = admitted.act
    remove_comment(*at, admitted.submission.id, given.comment)
    return {"comment": given.comment}


def rubric_points(admitted: Admitted, given: RubricPoints) -> dict[str, str]:
    """Give points for rows of the rubric."""
    check_decides(admitted)
    at = admitted.act
    points = {row.title: row.points for row in given.rows}
    give_points(*at, admitted.submission.id, points)
    return {"submission": admitted.submission.id}


def lab_rubric(admitted: Admitted, given: RubricToSet) -> dict[str, str]:
    """Give a lab other rows; a row without a title is none."""
    rows = tuple(
        RubricRow(title, row.points)
        for row in given.rows
        if (title := row.title.strip())
    )
    at = admitted.act
    set_rubric(*at, admitted.lab.id, Rubric(rows, given.replaces))
    return {"lab": admitted.lab.id}
