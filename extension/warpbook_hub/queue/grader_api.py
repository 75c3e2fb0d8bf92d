"""The hub's side of the graders' protocol, for a service to mount.

It asks nobody but the database, so graders go on while the hub's log-in is down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub_protocol import (
    GRADER_MESSAGE_BYTES,
    Heartbeat,
    Hello,
    JobResult,
    Problem,
    Release,
    WorkRequest,
)
from warpbook_hub.errors import BadRequest, Forbidden, HubError, NotFound
from warpbook_hub.queue import completion, dispatch, graders
from warpbook_monitors.budget import NotJson, decode_json
from warpbook_monitors.plain_text import bounded


class Answer(Struct, frozen=True):
    """What a service sends back: JSON."""

    http_status: int
    body: bytes


def answer(
    connection: Connection, now_ms: int, what: str, authorization: str, body: bytes
) -> Answer:
    """Answer a request of a grader, in one transaction that writes.

    Args:
        connection: of a transaction that the caller commits before it answers.
        what: the path behind `hub_protocol.GRADERS`: `hello`, `lease`, `heartbeat`,
            `result` or `release`.
        authorization: the header of that name.
        body: JSON; a service bounds it by `hub_protocol.GRADER_MESSAGE_BYTES`.

    Returns:
        Also what is refused, as a `Problem`; nothing of it was written then.
    """
    request = _REQUESTS.get(what)
    if request is None:
        return _problem(NotFound("There is nothing of this name."))
    scheme, _, token = authorization.partition(" ")
    try:
        if scheme.lower() not in ("bearer", "token"):
            raise Forbidden("Say who you are: `Authorization: Bearer <token>`.")
        if len(body) > GRADER_MESSAGE_BYTES:
            raise BadRequest("The message is too large.")
        grader = graders.authenticate(connection, token.strip())
        try:
            message = decode_json(body, request.decoder)
        except NotJson as problem:
            words = bounded(str(problem), 300)
            raise BadRequest(f"The message can't be read: {words}") from None
        graders.seen(connection, now_ms, grader)
        answered = request.handle(connection, now_ms, grader, message)
    except HubError as problem:
        return _problem(problem)
    return Answer(200, msgspec.json.encode(answered))


class _Request(NamedTuple):
    decoder: msgspec.json.Decoder[Any]
    handle: Callable[[Connection, int, str, Any], Struct]


_REQUESTS = {
    "hello": _Request(msgspec.json.Decoder(Hello), graders.hello),
    "lease": _Request(msgspec.json.Decoder(WorkRequest), dispatch.lease),
    "heartbeat": _Request(msgspec.json.Decoder(Heartbeat), graders.heartbeat),
    "result": _Request(msgspec.json.Decoder(JobResult), completion.finish),
    "release": _Request(msgspec.json.Decoder(Release), completion.release),
}


def _problem(problem: HubError) -> Answer:
    body = msgspec.json.encode(Problem(str(problem)))
    return Answer(problem.http_status, body)
