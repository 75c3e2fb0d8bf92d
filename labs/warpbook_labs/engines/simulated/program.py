"""What a learner's Python asked of the simulated machine, in its order.

It is recorded in the jail, where nothing can be trusted, with numbers that do not
count; the parent runs it again on those that do. Whoever forges a program has written
one.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from msgspec import Struct

#: those that NumPy has not, by the whole numbers that have the same bytes
_CARRIERS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_OF_NUMPY = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64"),
)
#: NumPy's, by PyTorch's name
DTYPES: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in _OF_NUMPY},
    **{name: np.dtype(carrier) for name, carrier in _CARRIERS.items()},
}


def item_bytes(dtype: str) -> int:
    """Say how many bytes an element has.

    Raises:
        KeyError: there is no such type.
    """
    return DTYPES[dtype].itemsize


#: where memory is: ordinary memory of the host, page-locked memory, the GPU's
Place = Literal["pageable", "pinned", "device"]
#: of the host itself, where something happens that is no stream's
HOST = -1
#: the stream that is there at first
DEFAULT_STREAM = 0


class View(Struct, frozen=True, array_like=True):
    """A tensor: elements of an allocation."""

    storage: int
    #: NumPy's name
    dtype: str
    shape: tuple[int, ...]
    #: in elements, as the offset is
    strides: tuple[int, ...]
    offset: int = 0
    #: of page-locked memory, as kernels reach it themselves, over the link
    is_mapped: bool = False


class Allocate(Struct, frozen=True, tag="allocate"):
    """New memory; the GPU's is given out for a stream, as PyTorch's allocator does."""

    storage: int
    size_bytes: int
    place: Place
    stream: int = HOST
    line: int = 0


class Release(Struct, frozen=True, tag="release"):
    """Nobody in Python holds this memory any more."""

    storage: int


class UseOn(Struct, frozen=True, tag="use on"):
    """The allocator is told that a stream uses it: `record_stream`."""

    storage: int
    stream: int


class Launch(Struct, frozen=True, tag="launch"):
    """One kernel on a stream; or, where the stream is HOST, work of the CPU."""

    #: one of `operations.OPERATIONS`, or an ATen call such as "aten.add.Tensor"
    operation: str
    stream: int
    reads: tuple[View, ...]
    writes: tuple[View, ...]
    #: what else the operation needs
    numbers: tuple[float, ...] = ()
    line: int = 0
    #: the arguments of an ATen call, in JSON: what is read and written stands there as
    #: {"r": 0} and {"w": 0}
    call: str = ""


class Copy(Struct, frozen=True, tag="copy"):
    """A copy in which host memory takes part; one on the GPU is a launch of "copy"."""

    source: View
    target: View
    stream: int
    #: the host was not asked to wait; whether it does is for the machine to say
    is_asynchronous: bool
    line: int = 0


class Read(Struct, frozen=True, tag="read"):
    """Python looks at the numbers of host memory; of a GPU's, it copies and waits."""

    source: View
    #: what was called, such as "item"
    what: str
    line: int = 0
    #: on which memory of the GPU is copied
    stream: int = DEFAULT_STREAM


class RecordEvent(Struct, frozen=True, tag="record event"):
    """A stream marks an event, anew each time."""

    event: int
    stream: int
    line: int = 0


class WaitEvent(Struct, frozen=True, tag="wait event"):
    """What a stream is given later waits for an event as it was last recorded."""

    event: int
    stream: int
    line: int = 0


class Synchronize(Struct, frozen=True, tag="synchronize"):
    """The host waits."""

    of: Literal["device", "stream", "event"]
    #: of the stream or event
    number: int = 0
    line: int = 0


class BeginCapture(Struct, frozen=True, tag="begin capture"):
    """What a stream, and others that wait for it, are given from now on is kept."""

    graph: int
    stream: int
    line: int = 0
    #: as `capture_error_mode="relaxed"`: CUDA refuses less
    is_relaxed: bool = False


class EndCapture(Struct, frozen=True, tag="end capture"):
    """The graph is whole."""

    graph: int
    line: int = 0


class Replay(Struct, frozen=True, tag="replay"):
    """A whole graph is launched."""

    graph: int
    stream: int
    line: int = 0


class ReleaseGraph(Struct, frozen=True, tag="release graph"):
    """Nobody in Python holds this graph any more."""

    graph: int


class BeginCall(Struct, frozen=True, tag="begin call"):
    """The device is idle, and `run` is called with new inputs in the same memory."""

    number: int


Instruction = (
    Allocate
    | Release
    | UseOn
    | Launch
    | Copy
    | Read
    | RecordEvent
    | WaitEvent
    | Synchronize
    | BeginCapture
    | EndCapture
    | Replay
    | ReleaseGraph
    | BeginCall
)


class Program(Struct, frozen=True):
    """All that was asked for one case."""

    #: the storages of the case's buffers, by parameter; nothing allocates them
    buffers: dict[str, View]
    #: what is before the first call was asked by `prepare`
    instructions: tuple[Instruction, ...]


class ProgramRefused(Exception):
    """No machine could have been asked this, or it is more than a lab may ask."""
