"""What a jailed process is asked to call, and what it answers."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from warpbook_labs.sandbox.work import Job, Work


class FunctionCall(Struct, frozen=True):
    """One call of a learner's function, with plain data."""

    function: str
    arguments: tuple[Any, ...]


class FunctionResult(Struct, frozen=True):
    """What one call gave."""

    #: in msgpack; judged as data, whatever it is
    data: bytes = b""
    #: why there is none, in words, and the line of the learner's where it happened
    problem: str = ""
    line: int | None = None
    printed: str = ""


class Opening(Struct, frozen=True):
    """What a dialogue begins with."""

    source: str
    #: each call may take so long
    call_s: float


class CallResults(Struct, frozen=True, tag="called"):
    """Every call."""

    answers: tuple[FunctionResult, ...]


class Call(Job[CallResults], frozen=True, tag="call"):
    """Call functions of a learner's Python, one after the other."""

    work: ClassVar[Work] = Work("warpbook_labs.engines.answers.calling", CallResults)
    source: str
    calls: tuple[FunctionCall, ...]
    #: each may take so long
    call_s: float = 1.0
