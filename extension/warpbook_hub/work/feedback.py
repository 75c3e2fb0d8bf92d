"""What staff tell the learners of a submission: comments, and points of the rubric."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select

from warpbook_hub import audit
from warpbook_hub.course.publications import publication
from warpbook_hub.database.tables import COMMENTS, RUBRIC_POINTS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.ids import new_id
from warpbook_hub.notices.notes import note_feedback
from warpbook_hub.texts import reason_of
from warpbook_hub.work.submissions import submission

#: of one submission
MOST_COMMENTS = 200


class Comment(Struct, frozen=True):
    """A note about a line of a source."""

    id: str
    #: from 1; 0: about all of it
    line: int
    note: str
    made_by: str
    made_ms: int


def comment(
    connection: Connection,
    now_ms: int,
    actor: str,
    submission_id: str,
    line: int,
    note: str,
) -> str:
    """Write a comment.

    Returns:
        Its id.

    Raises:
        BadRequest: it is empty or too long, or the source has no such line.
        NotFound: there is no such submission.
        Conflict: there are too many already.
    """
    text = reason_of(note, "comment")
    lines = submission(connection, submission_id).source.count("\n") + 1
    if not 0 <= line <= lines:
        raise BadRequest(f"The source has lines 1 to {lines}; 0 is all of it.")
    of = COMMENTS.c.submission == submission_id
    query = select(func.count()).select_from(COMMENTS).where(of)
    if connection.execute(query).scalar_one() >= MOST_COMMENTS:
        raise Conflict(f"A submission has at most {MOST_COMMENTS} comments.")
    named = new_id()
    connection.execute(
        insert(COMMENTS).values(
            id=named,
            submission=submission_id,
            line=line,
            note=text,
            made_by=actor,
            made_ms=now_ms,
        )
    )
    detail = {"comment": named, "line": line}
    audit.note(connection, now_ms, actor, "comment made", submission_id, detail)
    note_feedback(connection, now_ms, submission_id)
    return named


def remove_comment(
    connection: Connection, now_ms: int, actor: str, submission_id: str, named: str
) -> None:
    """Take a comment away.

    Raises:
        Conflict: the submission has no such comment.
    """
    which = (COMMENTS.c.submission == submission_id) & (COMMENTS.c.id == named)
    if not connection.execute(delete(COMMENTS).where(which)).rowcount:
        raise Conflict("This comment is not there any more.")
    detail = {"comment": named}
    audit.note(connection, now_ms, actor, "comment removed", submission_id, detail)


def comments(connection: Connection, submission_id: str) -> list[Comment]:
    query = (
        select(*(COMMENTS.c[name] for name in Comment.__struct_fields__))
        .where(COMMENTS.c.submission == submission_id)
        .order_by(COMMENTS.c.line, COMMENTS.c.made_ms, COMMENTS.c.id)
    )
    return [Comment(**row) for row in connection.execute(query).mappings()]


def give_points(
    connection: Connection,
    now_ms: int,
    actor: str,
    submission_id: str,
    given: Mapping[str, float | None],
) -> None:
    """Give a submission points for rows of its lab's rubric.

    Args:
        given: by the title of the row; None takes its points back.

    Raises:
        BadRequest: there is no such row, or it is not worth so much.
        NotFound: there is no such submission.
    """
    lab = publication(connection, submission(connection, submission_id).publication)
    worth = {row.title: row.points for row in lab.rubric.rows}
    of = RUBRIC_POINTS.c.submission == submission_id
    for title, points in given.items():
        if title not in worth:
            raise BadRequest("The lab's rubric has no such row: load the page again.")
        connection.execute(
            delete(RUBRIC_POINTS).where(of, RUBRIC_POINTS.c.criterion == title)
        )
        if points is None:
            continue
        if not (math.isfinite(points) and 0 <= points <= worth[title]):
            raise BadRequest(f"{title}: give 0 to {worth[title]:g} points.")
        connection.execute(
            insert(RUBRIC_POINTS).values(
                submission=submission_id,
                criterion=title,
                points=points,
                made_by=actor,
                made_ms=now_ms,
            )
        )
    detail = {"points": dict(given)}
    audit.note(connection, now_ms, actor, "rubric points set", submission_id, detail)
    note_feedback(connection, now_ms, submission_id)
