"""The whole body as one CUDA graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from warpbook.kernel.trying.changes.capturing import OwnRandomState, capturing
from warpbook.kernel.trying.changes.change import Applied, TriedCell, on_gpu_only
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.snapshot import Snapshot


class CudaGraph:
    """Captured once, then replayed: the host launches one thing."""

    name: ClassVar[str] = "cuda-graph"
    advice: ClassVar[str] = (
        "Capture the body by torch.cuda.graph(), or use "
        "torch.compile(mode='reduce-overhead'); a replay runs no Python, so inputs "
        "have to be copied into the tensors that were captured."
    )
    warm_ups: ClassVar[int] = 2

    def __init__(self) -> None:
        """Capture nothing yet."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._random: OwnRandomState | None = None
        #: names that the body bound while it was captured
        self._bound: dict[str, Any] = {}
        self._grads: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        self._last: Any = None

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        facts = cell.facts
        missing = on_gpu_only(cell)
        if missing is not None:
            return missing
        if facts.waits:
            names = ", ".join(sorted(facts.waits))
            return f"the cell waits for the GPU ({names}), which no graph can hold."
        if facts.copies:
            return "the cell copies between host and GPU, which is no part of a graph."
        if facts.on_host:
            names = ", ".join(sorted(facts.on_host)[:3])
            return f"the cell computes on the host ({names}), which a graph leaves out."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Replay it; the first time it is captured."""
        if self._random is None:
            self._random = OwnRandomState()
        with self._random.in_use():
            if self._graph is None:
                self._graph = self._capture(cell)
            yield Applied(self._replay, lambda: self._publish(cell))

    def _replay(self) -> Any:
        assert self._graph is not None
        self._graph.replay()
        return self._last

    def _publish(self, cell: TriedCell) -> None:
        """Bind what the body bound when it was captured."""
        cell.namespace.update(self._bound)
        for tensor, grad in self._grads:
            tensor.grad = grad

    def _capture(self, cell: TriedCell) -> torch.cuda.CUDAGraph:
        """Capture the body from the state in which each run begins.

        Raises:
            Refused: it can't be captured.
        """
        snapshot = Snapshot(cell.namespace, cell.reached)
        graph = torch.cuda.CUDAGraph()
        try:
            self._warm_up(cell, snapshot)
            with capturing(graph):
                self._last = cell.run()
            self._bound = snapshot.names.changed()
            leaves = (tensor for _, tensor in cell.reached.tensors if tensor.is_leaf)
            self._grads = [(leaf, leaf.grad) for leaf in leaves if leaf.requires_grad]
        except Exception as problem:  # the cell's own code may raise any
            said = str(problem).partition("\n")[0]
            raise Refused(f"it can't be captured ({said}).") from problem
        finally:
            torch.cuda.synchronize()
            snapshot.restore()
        return graph

    @staticmethod
    def _warm_up(cell: TriedCell, snapshot: Snapshot) -> None:
        """Run it on a stream of its own, as torch asks for before a capture."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        for _ in range(2):
            with torch.cuda.stream(stream):
                cell.run()
            stream.synchronize()
            snapshot.restore()
        torch.cuda.current_stream().wait_stream(stream)
