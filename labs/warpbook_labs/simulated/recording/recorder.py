"""What is recorded, in its order; and memory, in which the same is computed at once."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.simulated.operations import OPERATIONS
from warpbook_labs.simulated.program import (
    DEFAULT_STREAM,
    HOST,
    Allocate,
    BeginCapture,
    Copy,
    EndCapture,
    Instruction,
    Launch,
    Place,
    Read,
    RecordEvent,
    Release,
    ReleaseGraph,
    Replay,
    Synchronize,
    UseOn,
    View,
    WaitEvent,
)

_ALIGNMENT = 512
_MOST_BYTES = 1 << 32
_IN_CAPTURE = (
    "CUDA error: operation not permitted when stream is capturing. {what} makes the "
    "host wait for the GPU, and while a graph is captured its kernels do not run."
)


class TooMuch(RuntimeError):
    """More was asked than is recorded."""


class Storage:
    """Memory of one allocation."""

    def __init__(self, recorder: Recorder, number: int, data: NDArray[Any]) -> None:
        """Take memory that was allocated."""
        self.recorder = recorder
        self.number = number
        self.data = data
        self.address = int(data.__array_interface__["data"][0])
        self.place: Place = "pageable"
        #: of a buffer of the lab, which stays
        self.is_lent = False
        #: the page-locked memory that this shows as the GPU sees it, and who asked
        self.shown: weakref.ref[Storage] | None = None
        self.asker: object = None

    def as_mapped(self, asker: object) -> Storage:
        """Give it as the GPU sees it: memory that stays if the asker keeps it."""
        seen = Storage(self.recorder, self.number, self.data)
        seen.place, seen.shown, seen.asker = "device", weakref.ref(self), asker
        return seen

    @property
    def is_gone(self) -> bool:
        """Whether it shows memory that nobody held any more."""
        return self.shown is not None and self.shown() is None

    def __del__(self) -> None:
        """Say that nobody holds it any more."""
        if not (self.is_lent or self.shown):
            self.recorder.release(self)


class Graph:
    """A graph while it is captured, and what a replay computes."""

    def __init__(self, recorder: Recorder) -> None:
        """Begin with no steps."""
        self.recorder = recorder
        self.number = recorder.number_of("graph")
        self.steps: list[tuple[str, Sequence[Any], Sequence[Any], tuple[float, ...]]]
        self.steps = []


class Recorder:
    """One case: its memory, its streams and all that was asked."""

    def __init__(self, source_name: str, most_instructions: int) -> None:
        """Begin a case."""
        self.instructions: list[Instruction] = []
        self.stream = DEFAULT_STREAM
        #: streams to come back to
        self.entered: list[int] = []
        #: on which graphs are captured unless the learner names another
        self.capture_stream: int | None = None
        #: graphs by the streams whose work they keep
        self.capturing: dict[int, Graph] = {}
        #: the graph in which an event was recorded last
        self.marked_in: dict[int, Graph | None] = {}
        #: what the learner asked of all work that comes, such as "benchmark"
        self.settings: dict[str, Any] = {}
        #: where new tensors are that name no device, innermost last; the host if None
        self.default_devices: list[Any] = [None]
        self.allocated = 0
        self.most_allocated = 0
        self.is_open = True
        self._pinned: weakref.WeakSet[Storage] = weakref.WeakSet()
        self._source_name = source_name
        self._most = most_instructions
        self._counts: dict[str, int] = {}

    def leave_streams(self) -> None:
        """Whatever stream a call left as the current one, the next begins at first."""
        self.stream = DEFAULT_STREAM
        self.entered.clear()

    def number_of(self, kind: str) -> int:
        """The next number of a kind of thing, from 0."""
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        return number

    def line(self) -> int:
        """The learner's line that is executed now; 0 if none is."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.rpartition("/")[2] == self._source_name:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def add(self, instruction: Instruction) -> None:
        """Record it.

        Raises:
            TooMuch: there are as many as are kept.
            RuntimeError: the case is over.
        """
        if not self.is_open:
            raise RuntimeError("This tensor, stream or event is of another case.")
        if len(self.instructions) >= self._most:
            raise TooMuch(
                f"The simulated GPU records {self._most:,} things that it is asked, "
                f"and line {self.line()} asks for more. Does a loop not end?"
            )
        self.instructions.append(instruction)

    # -- memory

    def allocate(self, size_bytes: int, place: Place) -> Storage:
        """New memory; of the GPU's, for the current stream."""
        if size_bytes > _MOST_BYTES:
            raise RuntimeError(
                f"CUDA out of memory. Tried to allocate {size_bytes / 2**30:.2f} GiB; "
                f"the simulated GPU gives {_MOST_BYTES >> 30} GiB at once."
            )
        number = self.number_of("storage")
        stream = self.stream if place == "device" else HOST
        self.add(Allocate(number, size_bytes, place, stream, self.line()))
        storage = Storage(self, number, np.zeros(size_bytes, np.uint8))
        self._place(storage, place)
        if place == "device":
            self.allocated += -(-size_bytes // _ALIGNMENT) * _ALIGNMENT
            self.most_allocated = max(self.most_allocated, self.allocated)
        return storage

    def lend(self, data: NDArray[Any], place: Place) -> Storage:
        """Memory of a buffer of the lab."""
        flat = np.zeros(data.nbytes, np.uint8)
        flat[...] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        storage = Storage(self, self.number_of("storage"), flat)
        storage.is_lent = True
        self._place(storage, place)
        return storage

    def _place(self, storage: Storage, place: Place) -> None:
        storage.place = place
        if place == "pinned":
            self._pinned.add(storage)

    def pinned_at(self, address: int) -> Storage | None:
        """Find the page-locked memory that has an address."""
        for each in self._pinned:
            if 0 <= address - each.address < each.data.nbytes:
                return each
        return None

    def reset_peak(self) -> None:
        """The most memory is counted from now on."""
        self.most_allocated = self.allocated

    def release(self, storage: Storage) -> None:
        """Nobody holds it any more."""
        if storage.place == "device":
            self.allocated -= -(-storage.data.nbytes // _ALIGNMENT) * _ALIGNMENT
        if self.is_open:
            # what was allocated may be released, however much was asked
            self.instructions.append(Release(storage.number))

    def use_on(self, storage: Storage, stream: int) -> None:
        """`record_stream`."""
        self.add(UseOn(storage.number, stream))

    # -- work

    def launch(
        self,
        operation: str,
        stream: int,
        reads: Sequence[tuple[View, NDArray[Any]]],
        writes: Sequence[tuple[View, NDArray[Any]]],
        numbers: tuple[float, ...],
    ) -> None:
        """One kernel, or work of the processor."""
        views = tuple(v for v, _ in reads), tuple(v for v, _ in writes)
        numbers = tuple(map(float, numbers))
        self.add(Launch(operation, stream, *views, numbers, self.line()))
        self._compute(
            stream, operation, [a for _, a in reads], [a for _, a in writes], numbers
        )

    def copy(
        self,
        source: tuple[View, NDArray[Any]],
        target: tuple[View, NDArray[Any]],
        is_asynchronous: bool,
        touches_pageable: bool,
    ) -> None:
        """A copy between host and GPU, on the current stream."""
        if touches_pageable or not is_asynchronous:
            self.forbid_in_capture(self.stream, "A copy that is waited for")
        views = source[0], target[0]
        self.add(Copy(*views, self.stream, is_asynchronous, self.line()))
        self._compute(self.stream, "copy", [source[1]], [target[1]], ())

    def _compute(
        self,
        stream: int,
        operation: str,
        reads: Sequence[NDArray[Any]],
        writes: Sequence[NDArray[Any]],
        numbers: tuple[float, ...],
    ) -> None:
        graph = self.capturing.get(stream)
        if graph is not None:
            # a kernel that is captured runs when the graph is replayed
            graph.steps.append((operation, reads, writes, numbers))
        else:
            OPERATIONS[operation].function(reads, writes, numbers)

    def read(self, view: View, what: str, *, is_on_device: bool) -> None:
        """Python looks at numbers."""
        if is_on_device:
            self.forbid_in_capture(self.stream, f"{what}()")
        stream = self.stream if is_on_device else HOST
        self.add(Read(view, what, self.line(), stream))

    # -- order

    def record_event(self, event: int, stream: int) -> None:
        """A stream marks an event."""
        self.add(RecordEvent(event, stream, self.line()))
        self.marked_in[event] = self.capturing.get(stream)

    def wait_event(self, event: int, stream: int) -> None:
        """A stream waits for an event, and with it comes into a capture."""
        graph = self.marked_in.get(event)
        if graph is None and event in self.marked_in and stream in self.capturing:
            raise RuntimeError(
                "CUDA error: dependency created on uncaptured work in another stream: "
                "the event was recorded before the capture began. Wait for it before."
            )
        self.add(WaitEvent(event, stream, self.line()))
        if graph is not None and graph in self.capturing.values():
            self.capturing[stream] = graph

    def synchronize_device(self) -> None:
        """The host waits for all."""
        if self.capturing:
            raise RuntimeError(_IN_CAPTURE.format(what="torch.cuda.synchronize()"))
        self.add(Synchronize("device", 0, self.line()))

    def synchronize_stream(self, stream: int) -> None:
        """The host waits for a stream."""
        self.forbid_in_capture(stream, "Stream.synchronize()")
        self.add(Synchronize("stream", stream, self.line()))

    def synchronize_event(self, event: int) -> None:
        """The host waits for an event."""
        if self.marked_in.get(event) in self.capturing.values():
            raise RuntimeError(_IN_CAPTURE.format(what="Event.synchronize()"))
        self.add(Synchronize("event", event, self.line()))

    def forbid_in_capture(self, stream: int, what: str) -> None:
        """Raise what CUDA says where a captured stream is waited for."""
        if stream in self.capturing:
            raise RuntimeError(_IN_CAPTURE.format(what=what))

    # -- graphs

    def begin_capture(self, graph: Graph, stream: int) -> None:
        """What the stream is given from now on is kept."""
        if stream == DEFAULT_STREAM:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after "
                "capture, it's ok to replay them on the default stream.)"
            )
        if self.capturing:
            raise RuntimeError(_IN_CAPTURE.format(what="A capture within a capture"))
        self.add(BeginCapture(graph.number, stream, self.line()))
        self.capturing[stream] = graph

    def end_capture(self, graph: Graph) -> None:
        """The graph is whole."""
        self.capturing.clear()
        self.add(EndCapture(graph.number, self.line()))

    def replay(self, graph: Graph) -> None:
        """All of a graph, on the current stream."""
        self.forbid_in_capture(self.stream, "A replay")
        self.add(Replay(graph.number, self.stream, self.line()))
        for operation, reads, writes, numbers in graph.steps:
            OPERATIONS[operation].function(reads, writes, numbers)

    def release_graph(self, graph: Graph) -> None:
        """Nobody holds it any more."""
        if self.is_open:
            self.instructions.append(ReleaseGraph(graph.number))


_current: list[Recorder] = []


def current() -> Recorder:
    """The recorder of the case that runs."""
    if not _current:
        raise RuntimeError("No case runs on the simulated GPU.")
    return _current[-1]


def make_current(recorder: Recorder) -> None:
    """From now on this one records."""
    _current[:] = [recorder]


def line() -> int:
    """The learner's line that is executed now; 0 if none is, or no case runs."""
    return _current[-1].line() if _current else 0
