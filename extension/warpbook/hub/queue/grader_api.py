"""The hub's side of the graders' protocol, for a service to mount.

It asks nobody but the database, so graders go on while the hub's log-in is down.
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection


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
        now_ms: the server's time.
        what: the path behind `grader_protocol.PREFIX`: `hello`, `lease`, `heartbeat`,
            `result` or `release`.
        authorization: the header of that name.
        body: JSON; a service bounds it by `grader_protocol.MOST_MESSAGE_BYTES`.

    Returns:
        Also what is refused, as a `Problem`; nothing of it was written then.
    """
    raise NotImplementedError
