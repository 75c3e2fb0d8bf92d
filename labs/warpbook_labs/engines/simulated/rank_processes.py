"""Processes in the jail of a lab on ranks: one that answers, and one for each rank.

The first has the lab's `run` in it, all inputs, traffic and its bounds, and no line of
the learner's. Each other one has the learner's source and what one rank is given. They
reach one another through the parent alone.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import msgspec
from msgspec.msgpack import Ext

from warpbook_labs.engines.simulated.learner import (
    CantLoad,
    NotFit,
    fallen,
    given_module,
    loaded,
    print_warning,
)
from warpbook_labs.engines.simulated.messages import (
    Ask,
    Awaited,
    BeginRank,
    CaseRun,
    Fell,
    GoOn,
    HostCase,
    Returned,
    RunOnRanks,
)
from warpbook_labs.sandbox.learner_code import Printed, within
from warpbook_labs.sandbox.work import Answer, Refused

torch: Any = importlib.import_module("torch")

#: sends a message, and gives the answer to it
Exchange = Callable[[msgspec.Struct], bytes]
Reply = Awaited | Returned | Fell | Refused
#: tells how far a rank is, and gives what it goes on with
Tell = Callable[[Reply], GoOn]

_decode_reply = msgspec.msgpack.Decoder(Answer[Reply]).decode
_decode = msgspec.msgpack.Decoder(BeginRank | GoOn).decode
_decode_head = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...]]).decode
_TENSOR, _HEAD_BYTES = 1, 2
#: what bytes raise that are of no tensor
_MALFORMED = (msgspec.DecodeError, AttributeError, RuntimeError, TypeError)


def packed(value: Any) -> bytes:
    """Put tensors and plain data into bytes; what is neither becomes None."""
    return msgspec.msgpack.encode(value, enc_hook=_extension)


def unpacked(content: bytes) -> Any:
    """Give it back, with tensors of the CPU.

    Raises:
        ValueError: the bytes are of nothing.
    """
    try:
        return msgspec.msgpack.decode(content, ext_hook=_tensor)
    except _MALFORMED as problem:
        raise ValueError(f"It sent no tensor: {problem}") from None


def _extension(value: object) -> object:
    if not isinstance(value, torch.Tensor):
        return None
    name = str(value.dtype).removeprefix("torch.")
    head = msgspec.msgpack.encode((name, tuple(value.shape)))
    flat = value.detach().cpu().contiguous().flatten().view(torch.uint8)
    length = len(head).to_bytes(_HEAD_BYTES, "little")
    return Ext(_TENSOR, length + head + flat.numpy().tobytes())


def _tensor(code: int, content: memoryview) -> Any:
    begin = _HEAD_BYTES + int.from_bytes(content[:_HEAD_BYTES], "little")
    name, shape = _decode_head(content[_HEAD_BYTES:begin])
    dtype = getattr(torch, name)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{name} is no type of numbers")
    data = torch.frombuffer(
        bytearray(content[begin:]) or bytearray(1), dtype=torch.uint8
    )
    return data[: len(content) - begin].view(dtype).view(shape)


class Ranks:
    """What a lab's `run` gets of a learner: functions that each rank's process runs."""

    def __init__(self, job: RunOnRanks, case: HostCase, exchange: Exchange) -> None:
        self._job, self._exchange = job, exchange
        self._case = msgspec.structs.replace(case, calls=())
        self._given: Any = given_module(job.given)
        self.run = self._given.run

    def prepare(self, **sizes: int) -> list[Callable[..., Any]]:
        """Give a coroutine for each function, which the lab calls for each rank."""
        return [partial(self._work, place) for place in range(len(self._job.functions))]

    async def _work(self, place: int, comm: Any, *arguments: Any) -> Any:
        process = f"rank {comm.rank}"
        begin = BeginRank(
            self._job.source,
            self._job.given,
            self._job.case_s,
            self._case,
            place,
            comm.rank,
            comm.size,
            packed(arguments),
        )
        reply = self._asked(process, begin)
        while isinstance(reply, Awaited):
            x = unpacked(reply.x)
            request = self._given.Request(reply.kind, x, reply.peer, reply.line)
            reply = self._asked(process, GoOn(packed(await request)))
        return unpacked(reply.result)

    def _asked(self, process: str, message: BeginRank | GoOn) -> Awaited | Returned:
        answer = self._exchange(Ask(process, msgspec.msgpack.encode(message)))
        try:
            reply = _decode_reply(answer).result
        except (msgspec.DecodeError, RecursionError):
            words = f"{process} sent an invalid message."
            raise NotFit(CaseRun(problem=words)) from None
        if isinstance(reply, Refused):
            refused = CantLoad(reply.message)
            refused.status, refused.line = reply.status, reply.line
            raise refused
        sys.stdout.write(reply.printed)
        if isinstance(reply, Fell):
            raise NotFit(CaseRun(**msgspec.structs.asdict(reply)))
        return reply


class _Anew(Exception):
    """Another function begins; nobody answers what was awaited."""

    def __init__(self, begin: BeginRank) -> None:
        super().__init__()
        self.begin = begin


def serve_rank(begin: BeginRank, exchange: Exchange) -> None:
    """Run one function after the other on one rank, without end."""
    warnings.showwarning = print_warning

    def told(reply: Reply) -> GoOn:
        message: BeginRank | GoOn = _decode(exchange(reply))
        if isinstance(message, BeginRank):
            raise _Anew(message)
        return message

    while True:
        try:
            told(_reply(begin, told))
        except _Anew as anew:
            begin = anew.begin


def _reply(begin: BeginRank, tell: Tell) -> Reply:
    printed = Printed()
    try:
        # of the CPU, so that others are waited for without end
        with contextlib.redirect_stdout(printed), within(begin.case_s):
            module = loaded(begin, begin.case)
            result = _result(module, begin, printed, tell)
        return Returned(result, printed.held)
    except _Anew:
        raise
    except CantLoad as problem:
        return Refused(str(problem), problem.status, problem.line)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        left = fallen(problem, begin.case_s, "", printed)
        return Fell(**{name: getattr(left, name) for name in Fell.__struct_fields__})


def _result(
    module: ModuleType,
    begin: BeginRank,
    printed: Printed,
    tell: Callable[[Reply], GoOn],
) -> bytes:
    given: Any = sys.modules["given"]
    function = module.prepare(**begin.case.sizes)[begin.place]
    comm = given.Comm(begin.rank, begin.size)
    steps = given.steps(function, comm, *unpacked(begin.arguments))
    answer = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            return packed(end.value)
        awaited = Awaited(
            request.kind, packed(request.x), request.peer, request.line, printed.held
        )
        printed.held = ""
        answer = unpacked(tell(awaited).answer)
