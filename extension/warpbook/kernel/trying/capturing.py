"""Captures a CUDA graph so that a capture which fails leaves nothing behind.

torch takes back what a capture began only when the capture ends well. Where it fails,
the state of the random numbers stays marked, and no number can be drawn any more
(before torch 2.13), and the caching allocator goes on as if the capture went on: it
gives nothing back to the driver. The capture stream stays the current one, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

#: graphs whose capture failed: the allocator of pinned memory asks each of them at the
#: next capture whether it is that one's, and torch has no call that would end that
_failed: list[torch.cuda.CUDAGraph] = []


class OwnRandomState:
    """A state for random numbers of the current GPU, beside the person's.

    A graph belongs to the state that was in use when it was captured, and its replays
    draw from that.
    """

    def __init__(self) -> None:
        self._generator = torch.cuda.default_generators[torch.cuda.current_device()]
        self._own = self._generator.clone_state()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Draw from it, from where the person's is; that one stays as it is."""
        persons = self._generator.graphsafe_get_state()
        self._own.set_state(self._generator.get_state())
        try:
            self._generator.graphsafe_set_state(self._own)
            yield
        finally:
            self._generator.graphsafe_set_state(persons)


@contextlib.contextmanager
def capturing(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Capture what the block does on the GPU; what the block raises is raised."""
    stream = torch.cuda.current_stream()
    # named here, since a graph without a capture does not tell its own
    pool = torch.cuda.graph_pool_handle()
    raised: BaseException | None = None
    try:
        with torch.cuda.graph(graph, pool=pool):
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
