"""Watches what is done, and tells mistakes."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import wording
from .accesses import Access, Accesses
from .findings import Findings, at
from .graphs import Capture, Graph
from .memory import FIRST_CALL, GARBAGE, UNWRITTEN, Origin, Span, Storage
from .order import Lane


@dataclass
class Replayed:
    """A graph that is being replayed."""

    graph: Graph
    #: of `run`; before the first it is -1
    call: int
    #: storages that it has written by now
    written: set[Storage] = field(default_factory=set)


class Watch:
    """Sees each access to memory, and what is done to graphs."""

    def __init__(self, accesses: Accesses) -> None:
        """Begin, with nothing found."""
        self.findings = Findings()
        self._accesses = accesses
        #: lines that were told not to have an order
        self._told: set[tuple[int, int]] = set()

    def access(
        self, lane: Lane, span: Span, is_write: bool, what: str, line: int
    ) -> None:
        """Note an access, and tell what it should have waited for."""
        storage = span.storage
        if is_write and storage.is_read_only:
            self.findings.add(
                "read-only",
                f"Line {line} writes `{storage.name}`, which is an input.",
                line,
            )
        access = Access(lane, lane.step(), is_write, span, what, line)
        before = self._accesses.of_before(access)
        if before is not None and self._is_new(before, access):
            message = wording.of_reused(before, access, storage.line)
            self.findings.add("released too early", message, line)
        other = self._accesses.note(access)
        if other is not None and self._is_new(other, access):
            self.findings.add(*wording.of_conflict(other, access), line)

    def released(self, storage: Storage, host: Lane) -> None:
        """Tell that kernels may still use page-locked memory that nobody holds now.

        PyTorch's allocator waits for the copies that it knows, and for what the same
        stream did before them; it does not know who uses an address.
        """
        going_on = self._accesses.not_awaited(storage, host)
        copied: dict[int, int] = {}
        for each in going_on:
            if not each.span.view.is_mapped:
                number = each.lane.number
                copied[number] = max(each.tick, copied.get(number, 0))
        for each in going_on:
            if each.tick > copied.get(each.lane.number, 0):
                message = wording.of_released(each)
                self.findings.add("released too early", message, each.line)
                return

    def _is_new(self, first: Access, second: Access) -> bool:
        """Tell whether two lines were not told before."""
        lines = (first.line, second.line)
        if lines in self._told:
            return False
        self._told.add(lines)
        return True

    def looked_at(self, span: Span, what: str, line: int) -> None:
        """Tell that Python sees what nobody wrote."""
        storage = span.storage
        if span.holds(UNWRITTEN):
            self._unwritten(Origin(what, storage.name, storage.line, line))
        self.output(span)

    def output(self, span: Span) -> None:
        """Tell what an output was made of that nobody had written."""
        if span.storage.garbage is not None and span.holds(GARBAGE):
            self._unwritten(span.storage.garbage)

    def _unwritten(self, origin: Origin) -> None:
        """Tell that something is made of what nobody wrote."""
        name = origin.name
        memory = f"`{name}`" if name else f"memory of {at(origin.allocated)}"
        self.findings.add(
            "uninitialised read",
            f"Line {origin.line}: {origin.what} reads {memory}, of which nobody has "
            "written some element before.",
            origin.line,
        )

    def read_in(self, replay: Replayed, span: Span, line: int) -> None:
        """Look whether a graph reads what was meant for an earlier call."""
        graph = replay.graph
        if graph.is_known_stale or span.storage in replay.written or replay.call < 1:
            return
        stamps = span.stamps
        if not ((stamps >= FIRST_CALL) & (stamps < FIRST_CALL + replay.call)).any():
            return
        graph.is_known_stale = True
        self.findings.add(
            "stale graph",
            f"Line {line}, replayed in a graph, reads what the inputs of an earlier "
            "call left there. A graph reads the memory with which it was captured: "
            "copy each call's inputs into it before the replay.",
            line,
        )

    def replayed(self, graph: Graph, line: int) -> None:
        """Look whether a graph's memory is still there."""
        gone = [
            each for each in graph.storages if each.is_released and each.graph is None
        ]
        if not gone or graph.is_known_released:
            return
        graph.is_known_released = True
        self.findings.add(
            "released too early",
            f"Line {line} replays a graph that uses the memory of "
            f"{at(min(each.line for each in gone))}, which was released after the "
            "capture and may be another tensor's by now: keep the tensor as long as "
            "the graph.",
            line,
        )

    def not_joined(self, capture: Capture) -> None:
        """Tell which streams a graph does not wait for."""
        for lane, line in capture.not_joined():
            self.findings.add(
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
        self.findings.add("capture", message, line)

    def in_capture(self, what: str, line: int) -> None:
        """Tell what can't be captured."""
        self.findings.add(
            "capture",
            f"Line {line}: {what} can't be captured, since nothing runs yet: leave it "
            "out of the capture.",
            line,
        )

    def beside_capture(self, line: int) -> None:
        """Tell what is not captured."""
        self.findings.add(
            "capture",
            f"Line {line} runs on a stream that is not captured, so no replay does it "
            "again: let that stream wait for the one that is captured first.",
            line,
        )

    def event_of_before(self, line: int) -> None:
        """Tell that a graph would wait for what is no part of it."""
        self.findings.add(
            "capture",
            f"Line {line} lets a stream that is captured wait for an event of before "
            "the capture: CUDA refuses that. Wait before you capture.",
            line,
        )

    def event_of_graph(self, line: int) -> None:
        """Tell that something waits for what only a graph knows."""
        self.findings.add(
            "capture",
            f"Line {line} waits for an event that was recorded in a capture, which "
            "only that graph can do.",
            line,
        )
