"""What a person asks of their notices."""

from __future__ import annotations

from sqlalchemy import select

from warpbook.hub_protocol import Nothing
from warpbook_hub.database.tables import PEOPLE
from warpbook_hub.errors import Conflict
from warpbook_hub.notices import inbox
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import NoticesRead, NoticesWanted


def own_notices(admitted: Admitted, _: Nothing) -> list[inbox.Notice]:
    """Give a person's newest notices; nothing to somebody whom no course knows."""
    return inbox.notices(admitted.connection, person_asking(admitted))


def read(admitted: Admitted, given: NoticesRead) -> dict[str, int]:
    person = person_asking(admitted)
    connection, now_ms = admitted.connection, admitted.now_ms
    return {"read": inbox.mark_read(connection, now_ms, person, given.up_to_ms)}


def choose(admitted: Admitted, given: NoticesWanted) -> dict[str, str]:
    """Note what a person wants as mail."""
    person = person_asking(admitted)
    if not person:
        raise Conflict("You are in no course here, so there is nothing to tell you.")
    choice = inbox.NoticeChoice(given.mail, given.address)
    inbox.choose(admitted.connection, admitted.now_ms, person, choice)
    return {"mail": given.mail}


def person_asking(admitted: Admitted) -> str:
    """Give the id of who asks; empty where no course knows them."""
    query = select(PEOPLE.c.id).where(PEOPLE.c.username == admitted.username)
    return admitted.connection.execute(query).scalar() or ""
