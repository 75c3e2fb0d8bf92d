"""Events, waits and captures of one case, and what CUDA says that it does not allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from warpbook_labs.engines.simulated.program import (
    DEFAULT_STREAM,
    BeginCapture,
    EndCapture,
    RecordEvent,
    ReleaseGraph,
    Replay,
    Synchronize,
    WaitEvent,
)
from warpbook_labs.engines.simulated.pytorch.current import Record

_IN_CAPTURE = (
    "CUDA error: operation not permitted when stream is capturing. {what} makes the "
    "host wait for the GPU, and while a graph is captured its kernels do not run."
)


class Graph:
    """A graph, and what a replay of it computes."""

    def __init__(self, number: int) -> None:
        self.number = number
        #: they hold tensors of the CPU only, so that they keep none of the GPU's
        self.works: list[Callable[[], Any]] = []

    def append(self, work: Callable[[], Any]) -> None:
        """Keep work for each replay."""
        self.works.append(work)


class Order:
    """What is put in an order, and by what."""

    def __init__(self, record: Record) -> None:
        self._record = record
        #: graphs by the streams whose work they keep
        self._capturing: dict[int, Graph] = {}
        #: the graph in which an event was recorded last
        self._marked_in: dict[int, Graph | None] = {}

    @property
    def captured(self) -> Graph | None:
        """The graph that keeps what goes to the current stream."""
        return self._capturing.get(self._record.stream)

    def is_capturing(self, stream: int) -> bool:
        """Tell whether a graph keeps what goes to a stream."""
        return stream in self._capturing

    def forbid_in_capture(self, what: str, stream: int | None = None) -> None:
        """Raise what CUDA says where a captured stream is waited for."""
        stream = self._record.stream if stream is None else stream
        if stream in self._capturing:
            raise _error(_IN_CAPTURE.format(what=what))

    def record_event(self, event: int, stream: int) -> None:
        self._record.add(RecordEvent(event, stream, self._record.line()))
        self._marked_in[event] = self._capturing.get(stream)

    def wait_event(self, event: int, stream: int) -> None:
        """A stream waits for an event, and with it comes into a capture."""
        graph = self._marked_in.get(event)
        is_known = event in self._marked_in
        if is_known and graph is None and stream in self._capturing:
            raise _error(
                "CUDA error: dependency created on uncaptured work in another stream: "
                "the event was recorded before the capture began. Wait for it before."
            )
        self._record.add(WaitEvent(event, stream, self._record.line()))
        if graph is not None and graph in self._capturing.values():
            self._capturing[stream] = graph

    def synchronize_device(self) -> None:
        if self._capturing:
            raise _error(_IN_CAPTURE.format(what="torch.cuda.synchronize()"))
        self._record.add(Synchronize("device", 0, self._record.line()))

    def synchronize_stream(self, stream: int) -> None:
        self.forbid_in_capture("Stream.synchronize()", stream)
        self._record.add(Synchronize("stream", stream, self._record.line()))

    def synchronize_event(self, event: int) -> None:
        graph = self._marked_in.get(event)
        if graph is not None and graph in self._capturing.values():
            raise _error(_IN_CAPTURE.format(what="Event.synchronize()"))
        self._record.add(Synchronize("event", event, self._record.line()))

    def begin_capture(self, is_relaxed: bool = False) -> Graph:
        """What the current stream is given from now on is kept."""
        stream = self._record.stream
        if stream == DEFAULT_STREAM:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after "
                "capture, it's ok to replay them on the default stream.)"
            )
        if self._capturing:
            raise _error(_IN_CAPTURE.format(what="A capture within a capture"))
        graph = Graph(self._record.number_of("graph"))
        line = self._record.line()
        self._record.add(BeginCapture(graph.number, stream, line, is_relaxed))
        self._capturing[stream] = graph
        return graph

    def end_capture(self, graph: Graph) -> None:
        self._capturing.clear()
        self._record.add(EndCapture(graph.number, self._record.line()))

    def replay(self, graph: Graph) -> None:
        """Do all of a graph, on the current stream."""
        self.forbid_in_capture("A replay")
        stream = self._record.stream
        self._record.add(Replay(graph.number, stream, self._record.line()))
        for work in graph.works:
            work()

    def release_graph(self, graph: Graph) -> None:
        self._record.add_anyhow(ReleaseGraph(graph.number))


def _error(words: str) -> Exception:
    """Give what PyTorch raises for an error of CUDA's."""
    kind: Any = getattr(torch, "AcceleratorError", RuntimeError)
    problem: Exception = kind(words)
    return problem
