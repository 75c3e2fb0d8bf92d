"""Kinds of jobs: which module does them in the jail, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from warpbook_labs.sandbox.limits import Tier

#: how a run, or a whole job, went
Status = Literal["ran", "refused", "unsupported", "not run"]
ResultT = TypeVar("ResultT")


class Refused(Struct, frozen=True, tag="refused"):
    """It can't be done; the message is for the author of the source."""

    message: str
    status: Status = "refused"
    #: of the source, where the message is about one
    line: int | None = None


class Answer(Struct, Generic[ResultT], frozen=True):
    """What the jailed process says of its job."""

    tier: Tier
    is_filtered: bool
    result: ResultT


class Module(Protocol):
    """What a module that does jobs has."""

    #: the type of its jobs
    Job: Any

    def prepare(self) -> None:
        """Load all that a job needs."""

    def do(self, job: Any) -> Struct:
        """Do a job."""

    def converse(self, first: bytes, exchange: Callable[[Struct], bytes]) -> None:
        """Answer a message, and those that answers are answered with, without end."""


class Work:
    """Who does one kind of jobs, and what they come to."""

    def __init__(self, module: str, result: Any, warm_module: str = "") -> None:
        """Describe it; nothing is loaded.

        Args:
            module: the name of a `Module`, which is loaded where the jobs are done.
            result: the type of what comes back, if it is not `Refused`.
            warm_module: the name of the `Module` that a warm process has loaded; the
                same if left out.
        """
        self.module, self.warm_module = module, warm_module or module
        # made now: msgspec takes no two threads that meet a type for the first time
        self.decoder = msgspec.msgpack.Decoder(Answer[result | Refused])


class Job(Struct, Generic[ResultT], frozen=True):
    """What is done in the jail: asked and answered in messages, trusted by nobody."""

    #: each kind has its own
    work: ClassVar[Work]
