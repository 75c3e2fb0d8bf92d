"""Watches what is done, and reports mistakes.

PyTorch has cuBLAS make its handle at the first matrix product of a thread. That takes
memory of the device, so in a capture it fails with `CUBLAS_STATUS_NOT_INITIALIZED`
(pytorch/pytorch#99397). The workspace of each stream is none of this: it comes from
PyTorch's allocator, which a capture allows.
"""

from __future__ import annotations

from collections.abc import Callable

from warpbook_labs.engines.simulated.judging import wording
from warpbook_labs.engines.simulated.judging.accesses import (
    Access,
    Accesses,
    at,
    is_known,
    seen_from_outside,
)
from warpbook_labs.engines.simulated.judging.calls.allowed import OF_CUBLAS, base_of
from warpbook_labs.engines.simulated.judging.graphs import (
    Capture,
    Graph,
    Kernel,
    Replayed,
)
from warpbook_labs.engines.simulated.judging.memory import (
    CARRIED,
    FIRST_CALL,
    GARBAGE,
    Origin,
    Span,
    Storage,
)
from warpbook_labs.engines.simulated.judging.order import Lane
from warpbook_labs.results.findings import Finding, Kind, Report


class Watch:
    """Sees each access to memory, and what is done to graphs."""

    def __init__(self, accesses: Accesses) -> None:
        self.report = Report()
        self._accesses = accesses
        #: lines that were told not to have an order
        self._told: set[tuple[int, int]] = set()
        #: of this call each lane's last wait that changed nothing: its line, and words
        self._in_vain: dict[Lane, tuple[int, str]] = {}

    def _tell(self, kind: Kind, message: str, line: int) -> None:
        self.report.add(Finding(kind, message, line if is_known(line) else None))

    def all_is_done(self) -> None:
        """Nobody has to wait any more for what there was."""
        self._in_vain.clear()

    def waits(self, lane: Lane, line: int) -> None:
        """Note that a line that may have waited for nothing before now does wait."""
        if self._in_vain.get(lane, (None,))[0] == line:
            del self._in_vain[lane]

    def waits_for_itself(self, lane: Lane, line: int, recorded: int) -> None:
        """Note a wait that changes nothing, in case one was needed."""
        self._in_vain[lane] = line, wording.of_itself(lane, line, recorded)

    def waits_for_nothing(self, lane: Lane, line: int) -> None:
        """Note a wait for an event that nobody has recorded."""
        self._in_vain[lane] = line, wording.of_no_event(line)

    def access(
        self,
        lane: Lane,
        span: Span,
        is_write: bool,
        what: str,
        line: int,
        replay: Replayed | None = None,
    ) -> None:
        """Note an access, and tell what it should have waited for."""
        storage = span.storage
        if is_write and storage.is_read_only:
            self._tell(
                "read-only",
                f"Line {line} writes `{storage.name}`, which is an input.",
                line,
            )
        access = Access(lane, lane.step(), is_write, span, what, line, replay)
        before = self._accesses.of_before(access)
        if before is not None:
            self._conflict(before, access, wording.of_reused)
        other = self._accesses.note(access)
        if other is not None:
            self._conflict(other, access, wording.of_conflict)

    def released(self, storage: Storage, host: Lane) -> None:
        """Tell that kernels may still use page-locked memory that nobody holds now.

        PyTorch's allocator waits for the copies that it knows, and for what the same
        stream did before them; it does not know who uses an address.
        """
        going_on = self._accesses.not_awaited(storage, host)
        copied: dict[int, int] = {}
        for access in going_on:
            if not access.span.view.is_mapped:
                number = access.lane.number
                copied[number] = max(access.tick, copied.get(number, 0))
        for access in going_on:
            if access.tick > copied.get(access.lane.number, 0):
                message = wording.of_released(access) + self._beside(host)
                self._tell("released too early", message, access.asked_line)
                return

    def _conflict(
        self,
        first: Access,
        second: Access,
        wording_of: Callable[[Access, Access], tuple[Kind, str]],
    ) -> None:
        """Tell what two accesses did to each other, of two lines once."""
        first, second = seen_from_outside(first, second)
        if first.asker is second.asker:
            # a graph left a stream of its own behind, which is told of its capture
            return
        lines = (first.asked_line, second.asked_line)
        if lines not in self._told:
            self._told.add(lines)
            kind, message = wording_of(first, second)
            message += self._beside(second.asker)
            self._tell(kind, message, second.asked_line)

    def _beside(self, lane: Lane) -> str:
        """Say of a lane that should have waited that it tried to."""
        _, words = self._in_vain.get(lane, (0, ""))
        return f" {words}" if words else ""

    def looked_at(self, span: Span, what: str, line: int) -> None:
        """Tell that Python sees what nobody wrote."""
        unwritten = span.unwritten(what, line)
        if unwritten:
            self._unwritten(unwritten)
        self.output(span)

    def output(self, span: Span) -> None:
        """Tell what an output was made of that nobody had written."""
        storage = span.storage
        for origin, stamp in ((storage.garbage, GARBAGE), (storage.carried, CARRIED)):
            if origin is not None and span.holds(stamp):
                self._unwritten(origin)

    def left_out(self, output: Storage) -> None:
        """Tell what was to write an output, of which something was not written."""
        if output.captured is not None:
            line = output.captured
            self._tell("capture", wording.of_captured(output.name, line), line)

    def _unwritten(self, origin: Origin) -> None:
        """Tell that something is made of what nobody wrote."""
        message = wording.of_unwritten(origin)
        self._tell("uninitialised read", message, origin.line)

    def read_in(self, replay: Replayed, span: Span, line: int) -> None:
        """Look whether a graph reads what was meant for an earlier call."""
        graph = replay.graph
        if graph.is_known_stale or span.storage in replay.written or replay.call < 1:
            return
        stamps = span.stamps
        if not ((stamps >= FIRST_CALL) & (stamps < FIRST_CALL + replay.call)).any():
            return
        graph.is_known_stale = True
        self._tell(
            "stale graph",
            f"Line {line}, replayed in a graph, reads what the inputs of an earlier "
            "call left there. A graph reads the memory with which it was captured: "
            "copy each call's inputs into it before the replay.",
            line,
        )

    def replayed(self, graph: Graph, line: int) -> None:
        """Look whether a graph's memory is still there."""
        gone = [
            storage
            for storage in graph.storages
            if storage.is_released and storage.graph is None
        ]
        if not gone or graph.is_known_released:
            return
        graph.is_known_released = True
        self._tell(
            "released too early",
            f"Line {line} replays a graph that uses the memory of "
            f"{at(min(storage.line for storage in gone))}, which was released after "
            "the capture and may be another tensor's by now: keep the tensor as long "
            "as the graph.",
            line,
        )

    def not_joined(self, capture: Capture) -> None:
        """Tell which streams a graph does not wait for."""
        for lane, line in capture.not_joined():
            self._tell(
                "capture",
                f"What {at(line)} put on {lane.name} is captured, and the stream of "
                "the capture does not wait for it in the end: CUDA refuses such a "
                "graph. Let it wait.",
                line,
            )

    def never_ended(self, capture: Capture) -> None:
        """Tell that a capture still goes on at the end of a call."""
        line = capture.graph.line
        message = f"The capture of {at(line)} never ended."
        self._tell("capture", message, line)

    def in_capture(self, what: str, line: int) -> None:
        self._tell(
            "capture",
            f"Line {line}: {what} can't be captured, since nothing runs yet: leave it "
            "out of the capture.",
            line,
        )

    def first_product(self, line: int) -> None:
        """Tell that cuBLAS is first wanted while a graph is captured."""
        self._tell("capture", wording.of_first_product(line), line)

    def beside_capture(self, lane: Lane, line: int) -> None:
        self._tell(
            "capture",
            f"Line {line} runs on a stream that is not captured, so no replay does it "
            "again: let that stream wait for the one that is captured first."
            + self._beside(lane),
            line,
        )

    def event_of_before(self, line: int) -> None:
        """Tell that a graph would wait for what is no part of it."""
        self._tell(
            "capture",
            f"Line {line} lets a stream that is captured wait for an event of before "
            "the capture: CUDA refuses that. Wait before you capture.",
            line,
        )

    def event_of_graph(self, line: int) -> None:
        """Tell that something waits for what only a graph knows."""
        self._tell(
            "capture",
            f"Line {line} waits for an event that was recorded in a capture, which "
            "only that graph can do.",
            line,
        )


class FirstProduct:
    """Waits for the first product of a program."""

    def __init__(self, watch: Watch) -> None:
        """Begin without a handle."""
        self._watch = watch
        self._has_handle = False

    def launched(self, kernel: Kernel, capture: Capture | None) -> None:
        """Note a kernel, and tell of the first product in a capture.

        A relaxed capture is not known to fail, and is let pass.
        """
        is_product = base_of(kernel.launch.operation) in OF_CUBLAS
        if self._has_handle or not (is_product and kernel.has_elements()):
            return
        self._has_handle = True
        if capture is not None and not capture.graph.is_relaxed:
            self._watch.first_product(kernel.launch.line)
