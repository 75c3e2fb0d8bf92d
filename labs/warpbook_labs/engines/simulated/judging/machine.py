"""The simulated machine: does what a program asks, in its order, and watches.

Results are those of doing one thing after another, as the host asked for them. Where
that is not the only order that the machine may take, a finding says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook_labs.engines.simulated import program as recorded
from warpbook_labs.engines.simulated.judging import wording
from warpbook_labs.engines.simulated.judging.accesses import Accesses
from warpbook_labs.engines.simulated.judging.allocator import Allocator
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.judging.calls.convolution import Tuner
from warpbook_labs.engines.simulated.judging.calls.rates import Counting
from warpbook_labs.engines.simulated.judging.computing import host_ns
from warpbook_labs.engines.simulated.judging.graphs import (
    Capture,
    Event,
    Graph,
    Kernel,
    Tenure,
    Transfer,
    as_captured,
)
from warpbook_labs.engines.simulated.judging.memory import (
    FIRST_CALL,
    Memory,
    Span,
    Storage,
    can_be_written,
)
from warpbook_labs.engines.simulated.judging.order import Lanes, Mark
from warpbook_labs.engines.simulated.judging.running import Replayer, Runner
from warpbook_labs.engines.simulated.judging.timeline import Timeline
from warpbook_labs.engines.simulated.judging.watch import FirstProduct, Watch
from warpbook_labs.engines.simulated.program import HOST, ProgramRefused, View
from warpbook_labs.results.findings import HostCounts

#: of one launch; numbers of the host among them cross the link uncounted
MOST_OPERANDS = 10_000
#: captured in one program
MOST_GRAPHS = 64
#: nodes of graphs that are replayed in one program, each time again
MOST_REPLAYED = 400_000


class Machine:
    """One machine, for one program."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.tuner = Tuner()
        #: where Python first looked at what comes of the inputs
        self.first_look: int | None = None
        self._lanes = Lanes()
        self._accesses = Accesses(self._lanes.host)
        self._allocator = Allocator(self._lanes, self._accesses)
        self.watch = Watch(self._accesses)
        self._runner = Runner(self._lanes.host, self.watch)
        self._replayer = Replayer(self._lanes, self._allocator, self._runner)
        self._events: dict[int, Mark] = {}
        #: what recorded them
        self._records: dict[int, recorded.RecordEvent] = {}
        #: events that were last recorded while a graph was captured
        self._captured_events: set[int] = set()
        self._graphs: dict[int, Graph] = {}
        self._kept: set[Storage] = set()
        self._capture: Capture | None = None
        self._replayed = 0
        self._first_product = FirstProduct(self.watch)
        self._call = -1
        self._is_last_call = False
        self._does: dict[type, Callable[[Any], None]] = {
            recorded.Allocate: self._allocate,
            recorded.Release: self._release,
            recorded.UseOn: self._use_on,
            recorded.Launch: self._launch,
            recorded.Copy: self._copy,
            recorded.Read: self._read,
            recorded.RecordEvent: self._record_event,
            recorded.WaitEvent: self._wait_event,
            recorded.Synchronize: self._synchronize,
            recorded.BeginCapture: self._begin_capture,
            recorded.EndCapture: self._end_capture,
            recorded.Replay: self._replay,
            recorded.ReleaseGraph: self._release_graph,
        }

    @property
    def counts(self) -> HostCounts:
        return self._runner.counting.counts

    @property
    def counting(self) -> Counting:
        """The same, with the lines that asked for it."""
        return self._runner.counting

    @property
    def timeline(self) -> Timeline:
        """When all that this call asked happens."""
        return self._runner.timeline

    def do(self, instruction: recorded.Instruction) -> None:
        self._runner.look_at_clock()
        self._does[type(instruction)](instruction)

    def begin_call(self, number: int, is_last: bool) -> None:
        """Begin a call: the device is idle, and all is counted from here."""
        self._call, self._is_last_call = number, is_last
        self._runner.start_counting()

    def become_idle(self) -> None:
        """Let all be done, and the host know it."""
        if self._capture is not None:
            self.watch.never_ended(self._capture)
            self._capture = None
        self.counts.total_ns = self.timeline.finish()
        allocator = self._allocator
        self.counting.hold(allocator.held_bytes, allocator.held_by_line)
        self._lanes.wait_for_all()
        self._lanes.forget_work()
        self._events = {key: Mark(event.clock) for key, event in self._events.items()}
        for graph in self._graphs.values():
            if graph.last is not None:
                graph.last = Mark(graph.last.clock)
        self._accesses.all_is_done()
        self._allocator.all_is_done()
        self.watch.all_is_done()

    # memory

    def _allocate(self, new: recorded.Allocate) -> None:
        self.memory.add(new.storage, new.size_bytes)
        stream = new.stream if new.place == "device" else HOST
        capture = self._capture
        graph = None
        if capture is not None and capture.takes(stream):
            graph = capture.graph.number
        storage = Storage(
            new.storage, new.size_bytes, new.place, stream, graph, new.line
        )
        self.memory.keep(storage)
        if new.place != "device":
            return
        self._lanes.of(stream)
        self.counting.add("device_bytes", storage.size_bytes, new.line)
        self._allocator.count_new(storage)
        if graph is None:
            self._allocator.give_out(storage)
        elif capture is not None:
            capture.keep(Tenure("give out", storage), stream)

    def _release(self, release: recorded.Release) -> None:
        storage = self.memory[release.storage]
        if storage.name is not None:
            raise ProgramRefused("A buffer of the case can't be released.")
        if storage.place == "pinned":
            self.watch.released(storage, self._lanes.host)
        if storage.place == "device":
            self._allocator.count_released(storage)
            if storage.graph is None:
                self._allocator.take_back(storage)
            elif self._capture and self._capture.graph.number == storage.graph:
                self._capture.keep(Tenure("take back", storage), storage.stream)
        is_kept = storage.graph is not None or storage in self._kept
        if self._capture is not None:
            is_kept = is_kept or storage in self._capture.graph.storages
        self.memory.release(storage, is_kept)
        if storage.graph is None:
            self._accesses.forget(storage)

    def _use_on(self, use: recorded.UseOn) -> None:
        self._lanes.of(use.stream)
        self.memory[use.storage].used_on.add(use.stream)

    # work

    def _launch(self, launch: recorded.Launch) -> None:
        kernel = self._kernel(launch)
        if launch.stream == HOST:
            what = wording.short(launch.operation)
            self.timeline.host_works(what, host_ns(launch), launch.line)
            self._runner.run(kernel, self._lanes.host)
            return
        self._lanes.of(launch.stream)
        tuning_ns = self._tune(launch)
        if tuning_ns:
            self._host_waits_for_all(launch.line)
            self.timeline.host_works("tries algorithms", tuning_ns, launch.line)
        self.timeline.host_works("launches", rates.LAUNCH_NS, launch.line)
        self._first_product.launched(kernel, self._capture)
        if self._capture is not None:
            if self._capture.takes(launch.stream):
                self._capture.keep(as_captured(kernel), launch.stream, launch.line)
                return
            self.watch.beside_capture(self._lanes.of(launch.stream), launch.line)
        self.counting.add("launches", 1, launch.line)
        lane = self._lanes.of(launch.stream)
        lane.know(self._lanes.host.clock)
        self._runner.run(kernel, lane)

    def _copy(self, copy: recorded.Copy) -> None:
        source, target = self.memory.span(copy.source), self._target(copy.target)
        if (source.storage.place == "device") == (target.storage.place == "device"):
            raise ProgramRefused("A copy has one side on the host and one on the GPU.")
        transfer = Transfer(copy, source, target)
        is_pageable = transfer.is_pageable
        lane = self._lanes.of(copy.stream)
        self.timeline.host_works("queues a copy", rates.COPY_CALL_NS, copy.line)
        is_blocking = is_pageable or not copy.is_asynchronous
        if self._capture is not None:
            if self._capture.takes(copy.stream):
                if is_blocking:
                    self.watch.in_capture("a copy for which the host waits", copy.line)
                self._capture.keep(transfer, copy.stream, copy.line)
                return
            self.watch.beside_capture(lane, copy.line)
        lane.know(self._lanes.host.clock)
        self._runner.transfer(transfer, lane)
        if not is_blocking:
            return
        is_staged = is_pageable and copy.is_asynchronous
        if not is_staged or source.storage.place == "device":
            self._lanes.host.know(lane.clock)
        self._host_waits(lane.work, copy.line)

    def _read(self, read: recorded.Read) -> None:
        span = self.memory.span(read.source)
        host = self._lanes.host
        what = read.what if read.what.isidentifier() and len(read.what) < 40 else "read"
        if not span.is_on_gpu:
            self.watch.access(host, span, False, f"`{what}`", read.line)
        else:
            lane = self._lanes.of(read.stream)
            if self._capture is not None and self._capture.takes(read.stream):
                self.watch.in_capture(f"`{what}`", read.line)
                return
            lane.know(host.clock)
            self.watch.access(lane, span, False, f"`{what}`", read.line)
            self.counting.add("copies", 1, read.line)
            self.counting.add("d2h_bytes", span.size_bytes, read.line)
            self.counting.add("pageable_bytes", span.size_bytes, read.line)
            self.timeline.host_works("queues a copy", rates.COPY_CALL_NS, read.line)
            ns = span.size_bytes / rates.PAGEABLE_BYTES_PER_S * 1e9
            self._runner.queue(lane, "d2h", "copy to the host", ns, read.line)
            host.know(lane.clock)
            self._host_waits(lane.work, read.line)
        if not span.array.size:
            return
        self.watch.looked_at(span, f"`{what}`", read.line)
        if self.first_look is None and span.stamps.max() >= FIRST_CALL:
            self.first_look = read.line

    def _kernel(self, launch: recorded.Launch) -> Kernel:
        if len(launch.reads) + len(launch.writes) > MOST_OPERANDS:
            raise ProgramRefused(f"A kernel takes {MOST_OPERANDS:,} tensors at most.")
        reads = tuple(self.memory.span(view) for view in launch.reads)
        writes = tuple(self._target(view) for view in launch.writes)
        kernel = Kernel(launch, reads, writes)
        if not kernel.reaches_all():
            raise ProgramRefused(
                f"Line {launch.line}: {wording.short(launch.operation)} was given "
                "memory that it can't reach."
            )
        return kernel

    def _target(self, view: View) -> Span:
        if not can_be_written(view):
            raise ProgramRefused("Overlapping elements can't be written.")
        return self.memory.span(view)

    def _tune(self, launch: recorded.Launch, is_replayed: bool = False) -> float:
        is_done = self._capture is None or is_replayed
        try:
            return self.tuner.saw(launch, self._is_last_call and is_done)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ProgramRefused("The shapes of a convolution do not fit.") from error

    # order

    def _record_event(self, record: recorded.RecordEvent) -> None:
        self.timeline.host_works("records an event", rates.EVENT_NS, record.line)
        lane = self._lanes.of(record.stream)
        if self._capture is not None:
            if self._capture.takes(record.stream):
                node = Event("record", record.event, record.stream)
                self._capture.keep(node, record.stream, record.line)
                self._captured_events.add(record.event)
                return
            self._capture.forget(record.event)
        self._captured_events.discard(record.event)
        lane.know(self._lanes.host.clock)
        self._events[record.event] = lane.mark()
        self._records[record.event] = record

    def _wait_event(self, wait: recorded.WaitEvent) -> None:
        self.timeline.host_works("lets a stream wait", rates.EVENT_NS, wait.line)
        lane = self._lanes.of(wait.stream)
        capture = self._capture
        if capture is not None and capture.has_recorded(wait.event):
            node = Event("wait", wait.event, wait.stream)
            capture.keep(node, wait.stream, wait.line)
        elif wait.event in self._captured_events:
            self.watch.event_of_graph(wait.line)
        elif wait.event in self._events:
            if capture is not None and capture.takes(wait.stream):
                self.watch.event_of_before(wait.line)
                return
            record = self._records[wait.event]
            if record.stream == wait.stream:
                self.watch.waits_for_itself(lane, wait.line, record.line)
            else:
                self.watch.waits(lane, wait.line)
            self._runner.join(lane, self._events[wait.event])
        else:
            self.watch.waits_for_nothing(lane, wait.line)

    def _synchronize(self, wait: recorded.Synchronize) -> None:
        host = self._lanes.host
        capture = self._capture
        if capture is not None and (
            wait.of == "device"
            or (wait.of == "stream" and capture.takes(wait.number))
            or (wait.of == "event" and capture.has_recorded(wait.number))
        ):
            self.watch.in_capture("`synchronize`", wait.line)
            return
        if wait.of == "device":
            self._host_waits_for_all(wait.line)
            return
        if wait.of == "stream":
            mark = self._lanes.of(wait.number).mark()
        elif wait.number in self._captured_events:
            self.watch.event_of_graph(wait.line)
            return
        else:
            if wait.number not in self._events:
                self.watch.waits_for_nothing(host, wait.line)
            mark = self._events.get(wait.number, Mark({}))
        host.know(mark.clock)
        self._host_waits(mark.work, wait.line)

    def _host_waits(self, work: frozenset[int], line: int) -> None:
        self.counting.add("synchronizations", 1, line)
        self.timeline.wait(work, line)

    def _host_waits_for_all(self, line: int) -> None:
        self._host_waits(self._lanes.work(), line)
        self._lanes.wait_for_all()

    # graphs

    def _begin_capture(self, begin: recorded.BeginCapture) -> None:
        if self._capture is not None or begin.graph in self._graphs:
            raise ProgramRefused("A graph is captured once, and one at a time.")
        if len(self._graphs) >= MOST_GRAPHS:
            raise ProgramRefused(
                f"More than {MOST_GRAPHS} graphs were captured: capture one, and "
                "replay it."
            )
        graph = Graph(begin.graph, begin.stream, begin.line, begin.is_relaxed)
        self._graphs[begin.graph] = graph
        self._capture = Capture(graph)

    def _end_capture(self, end: recorded.EndCapture) -> None:
        capture = self._capture
        if capture is None or capture.graph.number != end.graph:
            raise ProgramRefused("A capture ends that was never begun.")
        graph = capture.graph
        self.watch.not_joined(capture)
        self._capture = None
        graph.is_whole = True
        self._kept |= graph.storages
        self.counting.add("captures", 1, graph.line)
        self.timeline.host_works(
            "makes the graph", len(graph.nodes) * rates.INSTANTIATE_NODE_NS, graph.line
        )

    def _replay(self, replay: recorded.Replay) -> None:
        graph = self._graphs.get(replay.graph)
        if graph is None or not graph.is_whole or self._capture is not None:
            raise ProgramRefused("An incomplete graph is replayed.")
        self._replayed += len(graph.nodes)
        if self._replayed > MOST_REPLAYED:
            raise ProgramRefused(f"Graphs replay more than {MOST_REPLAYED:,} nodes.")
        self.counting.add("graph_launches", 1, replay.line)
        self.timeline.host_works("launches a graph", rates.GRAPH_LAUNCH_NS, replay.line)
        self.watch.replayed(graph, replay.line)
        for node in graph.nodes:
            if isinstance(node, Kernel):
                self._tune(node.launch, is_replayed=True)
        self._replayer.replay(graph, replay, self._call)

    def _release_graph(self, release: recorded.ReleaseGraph) -> None:
        graph = self._graphs.get(release.graph)
        if graph is None or not graph.is_whole:
            raise ProgramRefused("An incomplete graph is released.")
        graph.is_whole = False
        self._allocator.forget_graph(graph.number)
