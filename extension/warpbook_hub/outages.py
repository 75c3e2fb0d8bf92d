"""When the hub took nothing: kept, and taken into account by every date that it moves.

The service notes up to when it has answered all that came. What follows without such
a note for long is an outage; those that move no date are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import Connection, select

from warpbook_hub.database import settings
from warpbook_hub.database.tables import (
    COURSES,
    EXTENSIONS,
    PUBLICATIONS,
    RESULTS,
    SUBMISSIONS,
    WINDOWS,
)
from warpbook_hub.rules.lateness import (
    AGAIN_MS,
    DAY_H,
    HOUR_MS,
    MINUTE_MS,
    UNSEEN_MS,
    Outage,
    extended_ms,
)

#: who ends a hub for longer than this, or sets its clock so far, tells people dates
_MOST_MS = 7 * DAY_H * HOUR_MS
_OUTAGES, _ANSWERED = "outages", "answered_ms"
_decode = msgspec.json.Decoder(tuple[Outage, ...]).decode


def outages(connection: Connection) -> tuple[Outage, ...]:
    """Give the outages that have moved a date, the earliest first."""
    return _decode(settings.get(connection, _OUTAGES) or "[]")


def note_answered(connection: Connection, time_ms: int) -> None:
    settings.put(connection, _ANSWERED, str(time_ms))


def note_return(connection: Connection, now_ms: int) -> Outage | None:
    """Note that the hub takes requests again; give the outage, if it was one.

    One that begins where the last has ended is the same.
    """
    answered = settings.get(connection, _ANSWERED)
    note_answered(connection, now_ms)
    if answered is None or not UNSEEN_MS < now_ms - int(answered) <= _MOST_MS:
        return None
    known, begun_ms = outages(connection), int(answered)
    if known and begun_ms <= known[-1].to_ms + UNSEEN_MS:
        begun_ms = min(begun_ms, known[-1].from_ms)
        known = known[:-1]
    elif known and not _moves_a_date(connection, known):
        known = known[:-1]
    outage = Outage(begun_ms, now_ms)
    text = msgspec.json.encode((*known, outage)).decode()
    settings.put(connection, _OUTAGES, text)
    return outage


def forget_answered(connection: Connection) -> None:
    """Begin anew: a backup does not know until when its hub has answered."""
    settings.put(connection, _ANSWERED, None)


def _moves_a_date(connection: Connection, known: Sequence[Outage]) -> bool:
    """Whether the last outage moves a date that those before it have not."""
    return any(
        extended_ms(date_ms, known) != extended_ms(date_ms, known[:-1])
        for date_ms in _dates(
            connection, known[0].from_ms - MINUTE_MS, known[-1].to_ms + AGAIN_MS
        )
    )


def _dates(connection: Connection, from_ms: int, to_ms: int) -> Iterator[int]:
    """Give all dates between two times until which people may do something."""
    for table in (WINDOWS, EXTENSIONS):
        for column in (table.c.due_ms, table.c.closes_ms):
            end_ms = column + COURSES.c.grace_min * MINUTE_MS
            query = (
                select(end_ms)
                .join(PUBLICATIONS, PUBLICATIONS.c.id == table.c.publication)
                .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
                .where(end_ms.between(from_ms, to_ms))
            )
            yield from connection.execute(query.distinct()).scalars()
    appealable = RESULTS.c.received_ms + COURSES.c.appeal_window_h * HOUR_MS
    yield from connection.execute(
        select(appealable)
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
        .where(appealable.between(from_ms, to_ms))
    ).scalars()
