"""A lab's competition: opened, frozen at its time, and ended by an instructor."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection, insert, select, update

from warpbook_hub import audit
from warpbook_hub.competition.measurements import count_open
from warpbook_hub.course.publications import Publication
from warpbook_hub.course.windows import all_windows
from warpbook_hub.database.tables import COMPETITIONS, COMPETITORS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.rules.lateness import DAY_H, HOUR_MS

#: "open": learners join; "frozen": they see the board of the freeze; "final": all do
Phase = Literal["open", "frozen", "final"]
FREEZE_BEFORE_DUE_MS = DAY_H * HOUR_MS


class Competition(Struct, frozen=True):
    """When the board of a lab stands still."""

    publication: str
    opened_ms: int
    freezes_ms: int
    #: None until an instructor ends it
    ended_ms: int | None

    def phase(self, now_ms: int) -> Phase:
        if self.ended_ms is not None:
            return "final"
        return "open" if now_ms < self.freezes_ms else "frozen"

    def shown_ms(self, now_ms: int, is_staff: bool) -> int:
        """Tell which moment's board somebody sees."""
        if self.ended_ms is not None:
            return self.ended_ms
        return now_ms if is_staff else min(now_ms, self.freezes_ms)


def open_competition(
    connection: Connection,
    now_ms: int,
    actor: str,
    lab: Publication,
    freezes_ms: int | None = None,
) -> Competition:
    """Open a competition, or give one that is open another time of freezing.

    Args:
        actor: an instructor.
        lab: a lab that is timed.
        freezes_ms: 24 hours before the first due date if left out.

    Raises:
        BadRequest: the freeze is not ahead, or is after the last due date.
        Conflict: the lab has no board, or its board is frozen.
    """
    if not may_have(lab):
        raise Conflict(
            "A competition needs a lab that is timed, on the list, and no team work."
        )
    before = competition(connection, lab.id)
    if before is not None and before.phase(now_ms) != "open":
        raise Conflict("The board of this competition is frozen; it stays so.")
    when_ms = default_freeze_ms(lab) if freezes_ms is None else freezes_ms
    if not now_ms < when_ms <= last_due_ms(connection, lab):
        raise BadRequest(
            "Choose a time of freezing that is ahead, and not after the lab is due."
        )
    key = COMPETITIONS.c.publication == lab.id
    if before is None:
        row = {"publication": lab.id, "opened_ms": now_ms, "freezes_ms": when_ms}
        connection.execute(insert(COMPETITIONS).values(**row))
    else:
        change = update(COMPETITIONS).where(key)
        connection.execute(change.values(freezes_ms=when_ms))
    detail = {"freezes_ms": when_ms}
    audit.note(connection, now_ms, actor, "competition opened", lab.id, detail)
    opened_ms = now_ms if before is None else before.opened_ms
    return Competition(lab.id, opened_ms, when_ms, None)


def end_competition(
    connection: Connection, now_ms: int, actor: str, lab: Publication
) -> Competition:
    """Have everybody see the final board: of the final, if one was run, or as it is.

    Raises:
        Conflict: see `require_settled`.
    """
    now = require_settled(connection, now_ms, lab)
    key = COMPETITIONS.c.publication == lab.id
    connection.execute(update(COMPETITIONS).where(key).values(ended_ms=now_ms))
    audit.note(connection, now_ms, actor, "competition ended", lab.id)
    return Competition(lab.id, now.opened_ms, now.freezes_ms, now_ms)


def may_have(lab: Publication) -> bool:
    return lab.is_timed and not lab.is_team_work and not lab.is_withdrawn


def competition(connection: Connection, publication_id: str) -> Competition | None:
    """Give the competition of a lab; None if there is none."""
    query = select(COMPETITIONS).where(COMPETITIONS.c.publication == publication_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else Competition(**row)


def require(connection: Connection, publication_id: str) -> Competition:
    """Give the competition of a lab.

    Raises:
        Conflict: there is none.
    """
    now = competition(connection, publication_id)
    if now is None:
        raise Conflict("This lab has no competition.")
    return now


def require_settled(
    connection: Connection, now_ms: int, lab: Publication
) -> Competition:
    """Give the competition of a lab, if nothing that counts can change any more.

    Raises:
        Conflict: there is no competition, it has ended, somebody may still hand in
            before their due date, or work of the board is not graded yet.
    """
    now = require(connection, lab.id)
    if now.ended_ms is not None:
        raise Conflict("This competition has ended.")
    if now_ms <= max(now.freezes_ms, last_due_ms(connection, lab)):
        raise Conflict("Wait until after the last due date of the lab.")
    joined = select(COMPETITORS.c.person).where(COMPETITORS.c.publication == lab.id)
    people = connection.execute(joined).scalars().all()
    waiting = count_open(connection, lab.id, people)
    if waiting:
        raise Conflict(
            f"Submissions of the board that are not graded yet: {waiting:,}. Wait for "
            "them, or cancel their jobs on the page Queue."
        )
    return now


def default_freeze_ms(lab: Publication) -> int:
    """Tell when a board is frozen unless an instructor says otherwise."""
    first_due_ms = min(window.due_ms for window in lab.windows.values())
    return first_due_ms - FREEZE_BEFORE_DUE_MS


def last_due_ms(connection: Connection, lab: Publication) -> int:
    """Give the last moment at which anybody is in time, extensions included."""
    windows = all_windows(connection, lab.id)
    return max(window.due_end_ms for window in windows)
