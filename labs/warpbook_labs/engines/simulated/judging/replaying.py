"""Replays graphs: does all that a capture kept, each time anew."""

from __future__ import annotations

from warpbook_labs.engines.simulated.judging.allocator import Allocator
from warpbook_labs.engines.simulated.judging.graphs import (
    Graph,
    Kernel,
    Replayed,
    Tenure,
    Transfer,
)
from warpbook_labs.engines.simulated.judging.order import Lane, Lanes, Mark
from warpbook_labs.engines.simulated.judging.running import Runner
from warpbook_labs.engines.simulated.program import Replay


class Replayer:
    """Does what graphs hold, each stream of theirs on a lane of its own."""

    def __init__(self, lanes: Lanes, allocator: Allocator, runner: Runner) -> None:
        """Share what a machine has."""
        self._lanes = lanes
        self._allocator = allocator
        self._runner = runner

    def replay(self, graph: Graph, replay: Replay, call: int) -> None:
        """Do a graph after all that its stream was given.

        Args:
            graph: which one; it is whole.
            replay: what was asked.
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
