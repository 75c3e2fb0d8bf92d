"""Does kernels and copies: their results, their accesses, their time."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.engines.simulated.judging.allocator import Allocator
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.judging.calls.rates import Counting
from warpbook_labs.engines.simulated.judging.computing import Computer, kernel_ns
from warpbook_labs.engines.simulated.judging.graphs import (
    Graph,
    Kernel,
    Replayed,
    Tenure,
    Transfer,
)
from warpbook_labs.engines.simulated.judging.link import over_link_of
from warpbook_labs.engines.simulated.judging.memory import Span
from warpbook_labs.engines.simulated.judging.order import Lane, Lanes, Mark
from warpbook_labs.engines.simulated.judging.timeline import Timeline
from warpbook_labs.engines.simulated.judging.watch import Watch
from warpbook_labs.engines.simulated.judging.wording import short
from warpbook_labs.engines.simulated.program import Replay
from warpbook_labs.results.findings import Engine
from warpbook_labs.sandbox.lines.objects import Lines, merge


class Replayer:
    """Does what graphs hold, each stream of theirs on a lane of its own."""

    def __init__(self, lanes: Lanes, allocator: Allocator, runner: Runner) -> None:
        self._lanes = lanes
        self._allocator = allocator
        self._runner = runner

    def replay(self, graph: Graph, replay: Replay, call: int) -> None:
        """Do a graph after all that its stream was given.

        Args:
            graph: which one; it is whole.
            call: of `run`; before the first it is -1.
        """
        lane, origin = self._lanes.of(replay.stream), self._lane(graph, graph.stream)
        lane.know(self._lanes.host.clock)
        lane.step()
        self._runner.join(origin, lane.mark())
        if graph.last is not None:
            self._runner.join(origin, graph.last)
        for storage in graph.written:
            storage.captured = None
        now = Replayed(graph, lane, replay.line, call)
        events: dict[int, Mark] = {}
        for node in graph.nodes:
            if isinstance(node, Kernel):
                self._runner.run(node, self._lane(graph, node.launch.stream), now)
            elif isinstance(node, Transfer):
                self._runner.transfer(node, self._lane(graph, node.copy.stream), now)
            elif isinstance(node, Tenure):
                if node.does == "give out":
                    self._allocator.give_out(node.storage)
                else:
                    self._allocator.take_back(node.storage)
            elif node.does == "record":
                events[node.event] = self._lane(graph, node.stream).mark()
            else:
                self._runner.join(self._lane(graph, node.stream), events[node.event])
        graph.last = origin.mark()
        self._runner.join(lane, graph.last)

    def _lane(self, graph: Graph, stream: int) -> Lane:
        return self._lanes.of(stream, graph.number)


#: pieces of work that a lane may wait for before they are drawn together
_MOST_AWAITED = 64


class Runner:
    """Does work on a lane, at once or in a graph that is replayed."""

    def __init__(self, host: Lane, watch: Watch) -> None:
        self.counting = Counting()
        self.timeline = Timeline()
        self._host = host
        self._watch = watch
        self._computer = Computer()

    def look_at_clock(self) -> None:
        """End a program that takes too long to judge."""
        self._computer.spend()

    def start_counting(self) -> None:
        self.counting, self.timeline = Counting(), Timeline()

    def run(self, kernel: Kernel, lane: Lane, replay: Replayed | None = None) -> None:
        """Do a kernel, or work of the host, now."""
        launch = kernel.launch
        what = f"`{short(launch.operation)}`"
        for span in kernel.reads:
            if replay is not None:
                self._watch.read_in(replay, span, launch.line)
            # a number of the host comes along with the launch
            by = lane if span.is_on_gpu else self._host
            self._watch.access(by, span, False, what, launch.line, replay)
        for span in kernel.writes:
            self._watch.access(lane, span, True, what, launch.line, replay)
        _note_sources(kernel.reads, kernel.writes, launch.line, replay)
        self._computer.run(kernel)
        if replay is not None:
            replay.written |= {span.storage for span in kernel.writes}
        if lane is not self._host:
            over_link = over_link_of(kernel)
            self.counting.add("h2d_bytes", over_link.read_bytes, launch.line)
            self.counting.add("d2h_bytes", over_link.written_bytes, launch.line)
            self.queue(
                lane,
                "compute",
                short(launch.operation),
                max(kernel_ns(launch), over_link.ns),
                launch.line,
                gap_ns=rates.KERNEL_GAP_NS if replay is None else rates.GRAPH_GAP_NS,
                is_apart=launch.operation == "sleep",
            )

    def transfer(
        self, transfer: Transfer, lane: Lane, replay: Replayed | None = None
    ) -> None:
        """Do a copy between host and GPU now."""
        copy, source, target = transfer.copy, transfer.source, transfer.target
        is_down = source.storage.place == "device"
        what = "the copy to the host" if is_down else "the copy to the GPU"
        is_pageable = transfer.is_pageable
        if replay is not None:
            self._watch.read_in(replay, source, copy.line)
            replay.written.add(target.storage)
        # pageable memory is read before the call returns
        reader = self._host if is_pageable and not is_down else lane
        self._watch.access(reader, source, False, what, copy.line, replay)
        self._watch.access(lane, target, True, what, copy.line, replay)
        _note_sources((source,), (target,), copy.line, replay)
        self._computer.move(source, target, what, copy.line)
        size_bytes = source.array.nbytes
        self.counting.add("copies", 1, copy.line)
        direction = "d2h_bytes" if is_down else "h2d_bytes"
        self.counting.add(direction, size_bytes, copy.line)
        if is_pageable:
            self.counting.add("pageable_bytes", size_bytes, copy.line)
        bytes_per_s = rates.PINNED_BYTES_PER_S
        if is_pageable:
            bytes_per_s = rates.PAGEABLE_BYTES_PER_S
        self.queue(
            lane,
            "d2h" if is_down else "h2d",
            what.removeprefix("the "),
            size_bytes / bytes_per_s * 1e9,
            copy.line,
        )

    def join(self, lane: Lane, mark: Mark) -> None:
        """Let a lane wait for a mark."""
        lane.wait_for(mark)
        if len(lane.work) > _MOST_AWAITED:
            self.queue(lane, "compute", "waits", 0, 0, gap_ns=0, is_apart=True)

    def queue(
        self,
        lane: Lane,
        engine: Engine,
        label: str,
        duration_ns: float,
        line: int,
        *,
        gap_ns: int = rates.COPY_GAP_NS,
        is_apart: bool = False,
    ) -> None:
        """Queue work on an engine, after all that its lane waits for."""
        number = self.timeline.queue(
            engine,
            label,
            duration_ns,
            lane.work,
            line,
            gap_ns=gap_ns,
            is_apart=is_apart,
        )
        lane.work = frozenset((number,))


def _note_sources(
    reads: Sequence[Span], writes: Sequence[Span], line: int, replay: Replayed | None
) -> None:
    """Note that what is written came from a line, and from what is read there."""
    lines: Lines = {line: 0}
    if replay is not None:
        lines[replay.line] = 1
    for span in reads:
        merge(lines, span.storage.writers.sources, 1)
    for span in writes:
        span.storage.writers.come_from(span, lines)
