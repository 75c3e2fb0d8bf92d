"""Other dates of one learner for a lab."""

from __future__ import annotations

from msgspec import Struct, structs
from sqlalchemy import Connection, delete, insert, select

from warpbook_hub import audit
from warpbook_hub.course.publications import keep_shown, publication, reference_shown
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import EXTENSIONS
from warpbook_hub.errors import BadRequest, NotFound
from warpbook_hub.texts import reason_of


class Extension(Struct, frozen=True):
    """Other dates of one learner for a lab; `windows` says what a team has of them."""

    person: str
    due_ms: int
    closes_ms: int
    reason: str
    granted_by: str
    granted_ms: int
    #: since when learners could see the reference by then; None: they could not
    reference_ms: int | None


def extend(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    due_ms: int,
    closes_ms: int,
    reason: str,
) -> None:
    """Give one learner other dates, in place of any given before.

    Raises:
        BadRequest: they end before they begin, or no reason is given.
        NotFound: there is no such lab or learner.
    """
    of = publication(connection, publication_id)
    why = reason_of(reason)
    window = window_of(connection, publication_id, person)
    if window is None:
        raise NotFound("This lab is published for no section of this person.")
    if not window.opens_ms <= due_ms <= closes_ms:
        raise BadRequest("An extension is due after the lab opens, and closes then.")
    dates = (due_ms, closes_ms)
    shown_ms = reference_shown(connection, now_ms, publication_id)
    asked = (publication_id, person, *dates, why, shown_ms)
    given = grant(connection, now_ms, actor, *asked)
    told = structs.asdict(given)
    detail = {"lab": of.lab, "publication": publication_id, **told}
    audit.note(
        connection, now_ms, actor, "extension granted", person, detail, of.course
    )


def grant(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    due_ms: int,
    closes_ms: int,
    reason: str,
    shown_ms: int | None,
) -> Extension:
    """Give one learner dates that `extend` would take, without a line in the log.

    Args:
        shown_ms: what `reference_shown` tells; of many learners it is asked once.
    """
    keep_shown(connection, publication_id, shown_ms)
    given = Extension(person, due_ms, closes_ms, reason, actor, now_ms, shown_ms)
    put_extension(connection, publication_id, person, given)
    return given


def put_extension(
    connection: Connection, publication_id: str, person: str, given: Extension | None
) -> None:
    """Put an extension in the place of any other of a learner, or take it away."""
    key = (EXTENSIONS.c.publication == publication_id) & (EXTENSIONS.c.person == person)
    connection.execute(delete(EXTENSIONS).where(key))
    if given is not None:
        row = {"publication": publication_id, **structs.asdict(given)}
        connection.execute(insert(EXTENSIONS).values(**row))


def extension(
    connection: Connection, publication_id: str, person: str
) -> Extension | None:
    """Return the extension of a learner; None where they have none."""
    return next(iter(extensions(connection, publication_id, person)), None)


def extensions(
    connection: Connection, publication_id: str, person: str = ""
) -> list[Extension]:
    """Give the extensions of a lab, or of a learner, the last to be granted first."""
    query = (
        select(*(EXTENSIONS.c[name] for name in Extension.__struct_fields__))
        .where(EXTENSIONS.c.publication == publication_id)
        .order_by(EXTENSIONS.c.granted_ms.desc(), EXTENSIONS.c.person)
    )
    if person:
        query = query.where(EXTENSIONS.c.person == person)
    return [Extension(**row) for row in connection.execute(query).mappings()]
