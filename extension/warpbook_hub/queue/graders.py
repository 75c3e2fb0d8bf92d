"""Graders as the hub knows them: a name, a token, slots and GPUs."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, insert, select, update

from warpbook.hub_protocol import Device, Heartbeat, HeartbeatAnswer, Hello, Welcome
from warpbook_hub import audit
from warpbook_hub.database.tables import GRADERS, JOBS
from warpbook_hub.errors import BadRequest, Conflict, Forbidden, NotFound
from warpbook_hub.ids import new_id, new_token, token_digest
from warpbook_hub.queue import dispatch
from warpbook_hub.queue.dispatch import HEARTBEAT_S, LEASE_S, POLL_S, take_back
from warpbook_hub.queue.entries import has_gpu

MOST_SLOTS = 256
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class GraderInfo(Struct, frozen=True):
    """A grader, for instructors."""

    id: str
    name: str
    #: active, draining or retired
    state: str
    cpu_slots: int
    devices: tuple[Device, ...]
    seen_ms: int | None
    #: it was heard of within the time of a lease
    is_heard: bool


def register(connection: Connection, now_ms: int, actor: str, name: str) -> str:
    """Make a grader known, or give it another token; the old one is void then.

    Returns:
        Its token, which is kept nowhere.

    Raises:
        BadRequest: the name can't be used.
    """
    if _NAME.fullmatch(name) is None:
        raise BadRequest("The name of a grader has 1 to 40 letters, digits and . _ -.")
    token = new_token()
    digest = token_digest(token)
    query = select(GRADERS.c.id).where(GRADERS.c.name == name)
    grader = connection.execute(query).scalar()
    if grader is None:
        grader = new_id()
        connection.execute(
            insert(GRADERS).values(
                id=grader,
                name=name,
                token_digest=digest,
                state="active",
                cpu_slots=0,
                devices="[]",
                registered_ms=now_ms,
            )
        )
    else:
        change = update(GRADERS).where(GRADERS.c.id == grader)
        connection.execute(change.values(token_digest=digest, state="active"))
    audit.note(connection, now_ms, actor, "grader registered", grader, {"name": name})
    return token


def authenticate(connection: Connection, token: str) -> str:
    """Give the id of the grader that has a token.

    Raises:
        Forbidden: nobody has it, or the grader is retired.
    """
    query = select(GRADERS.c.id).where(
        GRADERS.c.token_digest == token_digest(token), GRADERS.c.state != "retired"
    )
    grader = connection.execute(query).scalar()
    if grader is None:
        raise Forbidden("No grader has this token.")
    return str(grader)


def hello(connection: Connection, now_ms: int, grader: str, message: Hello) -> Welcome:
    """Note what a grader has; what it had leased before is queued again.

    Raises:
        BadRequest: it has too much.
    """
    _note_what_it_has(connection, grader, message)
    # one that was drained has ended, and is wanted again
    change = update(GRADERS).where(GRADERS.c.id == grader)
    connection.execute(change.values(seen_ms=now_ms, state="active"))
    # what ended a grader in the middle of a job may be that job
    _take_back_all(connection, now_ms, grader, "The grader began anew.", is_crash=True)
    return Welcome(grader, LEASE_S, HEARTBEAT_S, POLL_S)


def heartbeat(
    connection: Connection, now_ms: int, grader: str, beat: Heartbeat
) -> HeartbeatAnswer:
    """Prolong leases, tell which are lost, and note what a grader has by now.

    Raises:
        BadRequest: it has too much.
    """
    if beat.has is not None:
        _note_what_it_has(connection, grader, beat.has)
    return dispatch.heartbeat(connection, now_ms, grader, beat)


def drain(connection: Connection, now_ms: int, actor: str, grader: str) -> None:
    """Give a grader no more jobs; it finishes what it has.

    Raises:
        NotFound: there is none.
    """
    _set_state(connection, grader, "draining")
    audit.note(connection, now_ms, actor, "grader drained", grader)


def activate(connection: Connection, now_ms: int, actor: str, grader: str) -> None:
    """Give a grader that was drained jobs again, if it has not ended.

    Raises:
        NotFound: there is none.
        Conflict: it is retired.
    """
    query = select(GRADERS.c.state).where(GRADERS.c.id == grader)
    if connection.execute(query).scalar() == "retired":
        raise Conflict("This grader is retired. Add it again by its name.")
    _set_state(connection, grader, "active")
    audit.note(connection, now_ms, actor, "grader activated", grader)


def retire(connection: Connection, now_ms: int, actor: str, grader: str) -> None:
    """Take a grader off for good: its token is void, and its jobs are queued again.

    Where it had the last GPU, what waits for one counts as it is, and says that its
    speed is not graded.

    Raises:
        NotFound: there is none.
    """
    _set_state(connection, grader, "retired")
    _take_back_all(connection, now_ms, grader, "The grader was retired.", False)
    audit.note(connection, now_ms, actor, "grader retired", grader)
    if has_gpu(connection):
        return
    words = "There is no GPU any more: its speed is not graded."
    connection.execute(
        update(JOBS)
        .where(JOBS.c.stage == "gpu", JOBS.c.state == "queued")
        .values(state="cancelled", finished_ms=now_ms, note=words)
    )


def graders(connection: Connection, now_ms: int) -> list[GraderInfo]:
    query = select(GRADERS).where(GRADERS.c.state != "retired").order_by(GRADERS.c.name)
    return [
        GraderInfo(
            row.id,
            row.name,
            row.state,
            row.cpu_slots,
            msgspec.json.decode(row.devices, type=tuple[Device, ...]),
            row.seen_ms,
            row.seen_ms is not None and now_ms - row.seen_ms <= LEASE_S * 1000,
        )
        for row in connection.execute(query)
    ]


def seen(connection: Connection, now_ms: int, grader: str) -> None:
    change = update(GRADERS).where(GRADERS.c.id == grader)
    connection.execute(change.values(seen_ms=now_ms))


def _take_back_all(
    connection: Connection, now_ms: int, grader: str, note: str, is_crash: bool
) -> None:
    query = select(JOBS).where(JOBS.c.grader == grader, JOBS.c.state == "leased")
    for job in connection.execute(query).all():
        take_back(connection, now_ms, job, note, is_crash)


def _note_what_it_has(connection: Connection, grader: str, message: Hello) -> None:
    if message.cpu_slots > MOST_SLOTS or len(message.devices) > MOST_SLOTS:
        raise BadRequest(f"A grader has up to {MOST_SLOTS} slots and GPUs.")
    connection.execute(
        update(GRADERS)
        .where(GRADERS.c.id == grader)
        .values(
            cpu_slots=message.cpu_slots,
            devices=msgspec.json.encode(message.devices).decode(),
            labs=None
            if message.labs is None
            else msgspec.json.encode(message.labs).decode(),
        )
    )


def _set_state(connection: Connection, grader: str, state: str) -> None:
    change = update(GRADERS).where(GRADERS.c.id == grader).values(state=state)
    if not connection.execute(change).rowcount:
        raise NotFound("There is no such grader.")
