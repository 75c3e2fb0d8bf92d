"""Jobs for the jail: who does them within which limits, and messages about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

#: how far the process is shut in, the best first:
#: "namespaces": it sees an empty root, no network and no other process;
#: "landlock": the kernel refuses it every file, but it shares the network;
#: "limits": time and memory are bounded
Tier = Literal["namespaces", "landlock", "limits"]

_WORDS: dict[Tier, str] = {
    "namespaces": "in a process with an empty root, no network and bounded memory "
    "and time",
    "landlock": "in a process that can open no file, with bounded memory and time",
    "limits": "in a process with bounded memory and time",
}


def isolation_words(tier: Tier, is_filtered: bool) -> str:
    """Tell in words how well a process is shut in."""
    if is_filtered:
        return f"{_WORDS[tier]}; it may make only the few system calls that it needs"
    if tier == "limits":
        return f"{_WORDS[tier]}, which this system can't isolate any further"
    return f"{_WORDS[tier]}; this system can't filter its system calls"


class Limits(Struct, frozen=True):
    """Bounds of one job."""

    #: CPU time, with the start of the process
    processor_s: int = 20
    #: what it may sleep, which takes none; waiting for a core is no sleep
    asleep_s: float = 30.0
    memory_bytes: int = 4 << 30
    output_bytes: int = 32 << 20


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


LENGTH_BYTES = 8


def read_message(pipe: IO[bytes], most_bytes: int) -> bytes | None:
    """Read one message; None where there is none any more, or it is too long."""
    head = pipe.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    if len(head) < LENGTH_BYTES or length > most_bytes:
        return None
    content = pipe.read(length)
    return content if len(content) == length else None


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def write_message(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(framed(content))
    pipe.flush()
