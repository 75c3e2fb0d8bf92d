"""Graphs: what is kept while a stream is captured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from warpbook_labs.engines.simulated.judging.memory import Span, Storage, span_of
from warpbook_labs.engines.simulated.judging.order import Lane, Lanes, Mark
from warpbook_labs.engines.simulated.program import HOST, Copy, Launch, View


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel, with what it reads and writes."""

    launch: Launch
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]

    def storages(self) -> set[Storage]:
        """Give the memory that it uses."""
        return {span.storage for span in (*self.reads, *self.writes)}

    def has_elements(self) -> bool:
        """Tell whether there is anything to compute, of anything."""
        return all(span.array.size for span in (*self.reads, *self.writes))

    def reaches_all(self) -> bool:
        """Tell whether all is where it runs, but for single numbers of the host."""
        is_kernel = self.launch.stream != HOST
        return all(span.is_on_gpu == is_kernel for span in self.writes) and all(
            span.is_on_gpu == is_kernel or _is_number_of_host(span)
            for span in self.reads
        )


@dataclass(frozen=True, eq=False)
class Transfer:
    """A copy between host and GPU."""

    copy: Copy
    source: Span
    target: Span

    def storages(self) -> set[Storage]:
        """Give the memory that it uses."""
        return {self.source.storage, self.target.storage}

    @property
    def is_pageable(self) -> bool:
        """Whether the host's side is not page-locked."""
        return "pageable" in (self.source.storage.place, self.target.storage.place)


@dataclass(frozen=True)
class Event:
    """A stream marks an event, or waits for one."""

    does: Literal["record", "wait"]
    event: int
    stream: int


@dataclass(frozen=True, eq=False)
class Tenure:
    """The graph's own memory is given out, or taken back."""

    does: Literal["give out", "take back"]
    storage: Storage


Node = Kernel | Transfer | Event | Tenure


@dataclass(eq=False)
class Graph:
    """What one capture kept."""

    number: int
    #: on which the capture began
    stream: int
    line: int
    #: it was captured so that CUDA refuses less
    is_relaxed: bool = False
    nodes: list[Node] = field(default_factory=list)
    #: what they use, and what of that they write
    storages: set[Storage] = field(default_factory=set)
    written: set[Storage] = field(default_factory=set)
    is_whole: bool = False
    #: of its last replay, which the next one waits for
    last: Mark | None = None
    #: it has been said already that it reads what is old, or is no longer there
    is_known_stale: bool = False
    is_known_released: bool = False


@dataclass(eq=False)
class Replayed:
    """A graph that is being replayed."""

    graph: Graph
    #: the stream that was asked to
    lane: Lane
    line: int
    #: of `run`; before the first it is -1
    call: int
    #: storages that it has written by now
    written: set[Storage] = field(default_factory=set)


class Capture:
    """A capture that goes on: which streams take part, and what each waited for."""

    def __init__(self, graph: Graph) -> None:
        """Begin with the first stream."""
        self.graph = graph
        self._lanes = Lanes()
        self._origin = self._lanes.of(graph.stream)
        self._streams: dict[int, tuple[Lane, int]] = {graph.stream: (self._origin, 0)}
        self._events: dict[int, Mark] = {}

    def takes(self, stream: int) -> bool:
        """Tell whether a stream's work is kept."""
        return stream in self._streams

    def has_recorded(self, event: int) -> bool:
        """Tell whether an event was last recorded by a stream that is captured."""
        return event in self._events

    def forget(self, event: int) -> None:
        """An event was recorded anew outside."""
        self._events.pop(event, None)

    def keep(self, node: Node, stream: int, line: int = 0) -> None:
        self.graph.nodes.append(node)
        lane = self._lanes.of(stream)
        lane_line = self._streams.get(stream, (lane, line))[1]
        if isinstance(node, Event) and node.does == "record":
            self._events[node.event] = lane.mark()
        elif isinstance(node, Event):
            lane.wait_for(self._events[node.event])
        elif not isinstance(node, Tenure):
            lane.step()
            lane_line = line
            self.graph.storages |= node.storages()
            for span in node.writes if isinstance(node, Kernel) else (node.target,):
                self.graph.written.add(span.storage)
                span.storage.captured = line
        self._streams[stream] = (lane, lane_line)

    def not_joined(self) -> list[tuple[Lane, int]]:
        """Give the streams whose work the first one does not wait for, with a line."""
        return [
            (lane, line)
            for lane, line in self._streams.values()
            if not self._origin.has_seen(lane.number, lane.clock.get(lane.number, 0))
        ]


def as_captured(kernel: Kernel) -> Kernel:
    """Keep a number of the host as it is now, as CUDA keeps a kernel's arguments."""
    reads = tuple(span if span.is_on_gpu else _frozen(span) for span in kernel.reads)
    return Kernel(kernel.launch, reads, kernel.writes)


def _is_number_of_host(span: Span) -> bool:
    """Tell whether it is one element, however far it is broadcast."""
    return not span.is_on_gpu and span.end - span.begin <= span.array.itemsize


def _frozen(span: Span) -> Span:
    old = span.storage
    # of a large tensor, too, a node keeps but what it reads
    storage = Storage(old.number, span.end - span.begin, "pageable", line=old.line)
    storage.data[:] = old.data[span.begin : span.end]
    storage.stamps[:] = old.stamps[span.begin : span.end]
    view = View(old.number, span.view.dtype, span.view.shape, span.view.strides)
    return span_of(storage, view)
