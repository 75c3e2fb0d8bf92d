"""The whole body of a cell as one CUDA graph."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook_profiler.capture.torch_gpus import used_devices
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


#: graphs whose capture failed: the allocator of pinned memory asks each of them at the
#: next capture whether it is that one's, and torch has no call that would end that
_failed: list[torch.cuda.CUDAGraph] = []


class OwnRandomState:
    """A state for random numbers of a GPU (the current one), beside the person's.

    A graph belongs to the state that was in use when it was captured, and its replays
    draw from that.
    """

    def __init__(self, device: int | None = None) -> None:
        if device is None:
            device = torch.cuda.current_device()
        self._generator = torch.cuda.default_generators[device]
        self._own = self._generator.clone_state()

    @contextlib.contextmanager
    def in_use(self, *, is_kept: bool = False) -> Iterator[None]:
        """Draw from it, from where the person's is.

        Args:
            is_kept: the person's goes to where this ends, unless the block raises.
        """
        persons = self._generator.graphsafe_get_state()
        self._own.set_state(self._generator.get_state())
        try:
            self._generator.graphsafe_set_state(self._own)
            yield
            drawn = self._generator.get_state()
        finally:
            self._generator.graphsafe_set_state(persons)
        if is_kept:
            self._generator.set_state(drawn)


class Captures:
    """Those of an edited cell: one that fails leaves nothing of the person's marked."""

    def __init__(self) -> None:
        self._random = [OwnRandomState(device) for device in used_devices()]

    @contextlib.contextmanager
    def taken_back(self) -> Iterator[None]:
        """Take back each that fails; numbers are drawn as they would be without."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(torch.cuda, "graph", capturing))
            for one in self._random:
                stack.enter_context(one.in_use(is_kept=True))
            yield


@contextlib.contextmanager
def capturing(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Capture what the block does on the GPU; what the block raises is raised.

    torch takes back what a capture began only when the capture ends well. Where it
    fails, the state of the random numbers stays marked, and no number can be drawn any
    more (before torch 2.13), and the caching allocator goes on as if the capture went
    on: it gives nothing back to the driver. The capture stream stays the current one.
    """
    stream = torch.cuda.current_stream()
    # named here, since a graph without a capture does not tell its own
    pool = torch.cuda.graph_pool_handle()
    raised: BaseException | None = None
    try:
        # `torch.cuda.graph` may be this function meanwhile
        with torch.cuda.graphs.graph(graph, pool=pool):
            try:
                yield
            except BaseException as problem:
                raised = problem
                raise
    except BaseException as problem:  # noqa: BLE001  # raised again below
        torch.cuda.set_stream(stream)
        _take_back(graph, pool)
        # that the capture could not be ended is only what follows
        raised = raised or problem
    if raised is not None:
        raise raised


def _take_back(graph: torch.cuda.CUDAGraph, pool: Any) -> None:
    graph.reset()
    device = torch.cuda.current_device()
    try:
        _end_of_pool()(device, pool)
    except RuntimeError:
        # torch has ended it
        return
    torch._C._cuda_releasePool(device, pool)
    _failed.append(graph)


def _end_of_pool() -> Any:
    # named so since torch 2.8
    new = getattr(torch._C, "_cuda_endAllocateToPool", None)
    return new or torch._C._cuda_endAllocateCurrentStreamToPool
