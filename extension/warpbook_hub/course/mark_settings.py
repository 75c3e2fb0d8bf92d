"""What instructors say about marks: how labs count in totals, and who sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import Connection, select, update

from warpbook_hub import audit
from warpbook_hub.course.publications import publication
from warpbook_hub.database.tables import COURSES, PUBLICATIONS
from warpbook_hub.errors import NotFound
from warpbook_hub.rules.totals import LabWeight, check_weights


def hide_marks(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_ids: Sequence[str],
    is_hidden: bool,
) -> int:
    """Hide marks and feedback of some labs from learners, or release them.

    Returns:
        For how many labs this is a change.

    Raises:
        NotFound: there is no such lab.
    """
    changed = 0
    for publication_id in publication_ids:
        if publication(connection, publication_id).is_hidden == is_hidden:
            continue
        put_hidden(connection, now_ms, publication_id, is_hidden)
        action = "marks hidden" if is_hidden else "marks released"
        audit.note(connection, now_ms, actor, action, publication_id)
        changed += 1
    return changed


def hidden_since(connection: Connection, publication_id: str) -> int | None:
    """Tell since when the marks of a lab are hidden; None: they are not."""
    query = select(PUBLICATIONS.c.hidden_ms).where(PUBLICATIONS.c.id == publication_id)
    hidden_ms: int | None = connection.execute(query).scalar_one()
    return hidden_ms


def put_hidden(
    connection: Connection, now_ms: int, publication_id: str, is_hidden: bool
) -> None:
    """Hide the marks of a lab or release them, without a line in the log."""
    change = update(PUBLICATIONS).where(PUBLICATIONS.c.id == publication_id)
    values = {"hidden_ms": now_ms if is_hidden else None}
    if not is_hidden:
        values["released_ms"] = now_ms
    connection.execute(change.values(**values))


def set_weights(
    connection: Connection,
    now_ms: int,
    actor: str,
    course_id: str,
    drop_lowest: int,
    weights: Mapping[str, LabWeight],
) -> None:
    """Say how totals of a course are computed.

    Args:
        drop_lowest: see `rules.totals.total`.
        weights: by publication; labs that are not named stay as they are.

    Raises:
        BadRequest: a weight or a count is out of range.
        NotFound: there is no such lab in the course.
    """
    check_weights([lab.weight for lab in weights.values()], drop_lowest)
    change = update(COURSES).where(COURSES.c.id == course_id)
    connection.execute(change.values(drop_lowest=drop_lowest))
    changed = []
    for publication_id, lab in weights.items():
        before = publication(connection, publication_id)
        if before.course != course_id:
            raise NotFound("There is no such lab in this course.")
        if before.counts != lab:
            changed.append({"lab": publication_id, **msgspec.structs.asdict(lab)})
        change = update(PUBLICATIONS).where(PUBLICATIONS.c.id == publication_id)
        values = {"weight": lab.weight, "is_bonus": int(lab.is_bonus)}
        connection.execute(change.values(**values))
    detail = {"left out": drop_lowest, "weights": changed}
    audit.note(connection, now_ms, actor, "totals changed", course_id, detail)
