"""The whole body of a cell as one CUDA graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from warpbook.kernel.trying.capturing import OwnRandomState, capturing
from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook_profiler.techniques.technique import Applied

Run = Callable[[], Any]


class BodyGraph:
    """Captured once, then replayed."""

    def __init__(self) -> None:
        """Capture nothing yet."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._random: OwnRandomState | None = None
        #: names that the body bound while it was captured
        self._bound: dict[str, Any] = {}
        self._grads: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        self._last: Any = None

    @contextlib.contextmanager
    def replaying(
        self, run: Run, namespace: dict[str, Any], reached: Reached
    ) -> Iterator[Applied]:
        """Replay it; the first time it is captured.

        Raises:
            Refused: it can't be captured.
        """
        if self._random is None:
            self._random = OwnRandomState()
        with self._random.in_use():
            if self._graph is None:
                self._graph = self._capture(run, namespace, reached)
            yield Applied(self._replay, lambda: self._publish(namespace))

    def _replay(self) -> Any:
        assert self._graph is not None
        self._graph.replay()
        return self._last

    def _publish(self, namespace: dict[str, Any]) -> None:
        """Bind what the body bound when it was captured."""
        namespace.update(self._bound)
        for tensor, grad in self._grads:
            tensor.grad = grad

    def _capture(
        self, run: Run, namespace: dict[str, Any], reached: Reached
    ) -> torch.cuda.CUDAGraph:
        """Capture the body from the state in which each run begins.

        Raises:
            Refused: it can't be captured.
        """
        snapshot = Snapshot(namespace, reached)
        graph = torch.cuda.CUDAGraph()
        try:
            _warm_up(run, snapshot)
            with capturing(graph):
                self._last = run()
            self._bound = snapshot.names.changed()
            leaves = (tensor for _, tensor in reached.tensors if tensor.is_leaf)
            self._grads = [(leaf, leaf.grad) for leaf in leaves if leaf.requires_grad]
        except Exception as problem:  # the cell's own code may raise any
            said = str(problem).partition("\n")[0]
            raise Refused(f"it can't be captured ({said}).") from problem
        finally:
            torch.cuda.synchronize()
            snapshot.restore()
        return graph


def _warm_up(run: Run, snapshot: Snapshot) -> None:
    """Run it on a stream of its own, as torch asks for before a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    for _ in range(2):
        with torch.cuda.stream(stream):
            run()
        stream.synchronize()
        snapshot.restore()
    torch.cuda.current_stream().wait_stream(stream)
