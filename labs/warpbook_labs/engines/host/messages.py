"""What the trusted process and its two children say to each other, over pipes.

A child's words are a learner's: nothing that counts follows from them.
"""

from __future__ import annotations

import struct
from typing import Literal

import msgspec
from msgspec import Struct

from warpbook_labs.lab.host_spec import HostPlace

#: "shared": buffers on the GPU are opened by both processes (CUDA IPC);
#: "staged": where that is refused, the child copies them from and to the host's memory
Transport = Literal["shared", "staged"]

LENGTH = struct.Struct("<I")
#: what a child may say at once
MOST_BYTES = 1 << 16


class Slot(Struct, frozen=True):
    """One buffer of one set, somewhere in the memory of its place."""

    name: str
    #: which set of buffers
    number: int
    dtype: str
    shape: tuple[int, ...]
    place: HostPlace
    #: in bytes, from the begin of this place's memory
    offset: int
    size_bytes: int
    is_read: bool
    is_written: bool


class Memory(Struct, frozen=True):
    """Memory of one place that both processes can reach."""

    place: HostPlace
    size_bytes: int
    #: of the host: an open file
    descriptor: int = -1
    #: of the GPU: what CUDA opens it by
    handle: bytes = b""


class Setup(Struct, frozen=True):
    """How a child begins; the learner's source comes later."""

    transport: Transport
    #: False: PyTorch's device is the CPU, and all memory is the host's
    has_gpu: bool
    memory: tuple[Memory, ...]
    #: pipes: what is asked, and what is answered
    requests: int
    answers: int
    #: what it must not read, such as labs' references
    hidden: tuple[str, ...]
    #: files are closed to it before CUDA starts, so to each of its threads
    is_early: bool = True
    #: the only one in which it may make files, which libraries want; its own
    folder: str = ""
    #: a trace will be asked for
    is_traced: bool = False


class Load(Struct, frozen=True, tag="load"):
    """Load a source."""

    source: str
    given: str


class Prepare(Struct, frozen=True, tag="prepare"):
    """Make tensors of these buffers, and call `prepare` once for each set."""

    sizes: dict[str, int]
    slots: tuple[Slot, ...]


class Run(Struct, frozen=True, tag="run"):
    """Call `run` with each of these sets, one after the other, and wait for the GPU."""

    turn: int
    sets: tuple[int, ...]
    numbers: dict[str, int | float]
    #: without a call of `run`; what is staged is copied
    is_empty: bool = False


class Record(Struct, frozen=True, tag="record"):
    """Do it several times under PyTorch's profiler, and write the trace."""

    run: Run
    times: int
    path: str


Command = Load | Prepare | Run | Record


class Ready(Struct, frozen=True, tag="ready"):
    """It has begun, and is shut in."""

    #: in words
    isolation: str


class Done(Struct, frozen=True, tag="done"):
    """It says that it did what it was asked."""

    turn: int = 0


class Failed(Struct, frozen=True, tag="failed"):
    """It could not; the words may be the learner's own."""

    kind: Literal["raised", "no torch", "no gpu", "no sharing"]
    message: str
    line: int | None = None
    #: CUDA is of no use to it any more, so its process ends
    ends: bool = False


Reply = Ready | Done | Failed

command_of = msgspec.msgpack.Decoder(Command).decode
reply_of = msgspec.msgpack.Decoder(Reply).decode


def framed(message: Command | Reply) -> bytes:
    """Write a message with its length before it."""
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body
