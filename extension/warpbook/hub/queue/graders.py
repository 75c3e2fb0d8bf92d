"""Graders as the hub knows them: a name, a token, slots and GPUs."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.grader_protocol import Device, Hello, Welcome


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
    raise NotImplementedError


def authenticate(connection: Connection, token: str) -> str:
    """Give the id of the grader that has a token.

    Raises:
        Forbidden: nobody has it, or the grader is retired.
    """
    raise NotImplementedError


def hello(connection: Connection, now_ms: int, grader: str, said: Hello) -> Welcome:
    """Note what a grader has; what it had leased before is queued again."""
    raise NotImplementedError


def drain(connection: Connection, now_ms: int, actor: str, grader: str) -> None:
    """Give a grader no more jobs; it finishes what it has, and ends.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def retire(connection: Connection, now_ms: int, actor: str, grader: str) -> None:
    """Take a grader off for good: its token is void, and its jobs are queued again.

    Where it had the last GPU, what waits for one counts as it is, and says that its
    speed is not graded.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def graders(connection: Connection, now_ms: int) -> list[GraderInfo]:
    """Give all graders that are not retired."""
    raise NotImplementedError
