"""A capture that fails leaves nothing behind, and one that does not draws the same.

What torch does with a GPU is not here: its classes stand for it, with what torch 2.4
to 2.12 do where a capture can't be ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpbook.kernel.trying.graph import Captures, OwnRandomState, capturing


@dataclass
class State:
    """Of random numbers: the next one, and whether a capture goes on."""

    next: int = 0
    is_captured: bool = False


class Generator:
    """Stands for a GPU's generator."""

    def __init__(self, state: State) -> None:
        self.state = state

    def clone_state(self) -> Generator:
        return Generator(State(self.state.next))

    def graphsafe_get_state(self) -> Generator:
        return Generator(self.state)

    def graphsafe_set_state(self, other: Generator) -> None:
        self.state = other.state

    def get_state(self) -> int:
        return self.state.next

    def set_state(self, state: int) -> None:
        self.state.next = state

    def draw(self) -> int:
        if self.state.is_captured:
            raise RuntimeError("Offset increment outside graph capture")
        self.state.next += 1
        return self.state.next


class Graph:
    """Stands for a graph of a thing that draws one number."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._state: State | None = None
        self.was_reset = False

    def begin(self, pool: int) -> None:
        self._state = self._gpu.generator.state
        self._state.is_captured = True
        self._gpu.capturing.append(pool)
        self._gpu.pools.append(pool)

    def end(self, pool: int) -> None:
        if self._gpu.is_invalid:
            self._gpu.is_invalid = False
            raise RuntimeError("operation failed due to a previous error")
        assert self._state is not None
        self._state.is_captured = False
        self._gpu.capturing.remove(pool)

    def replay(self) -> int:
        assert self._state is not None and not self._state.is_captured
        self._state.next += 1
        return self._state.next

    def reset(self) -> None:
        self.was_reset = True


class Gpu:
    """Stands for torch.cuda and its allocator."""

    def __init__(self) -> None:
        self.generator = Generator(State(7))
        self.stream = "the person's"
        #: memory pools that a capture allocates from, and all that are in use
        self.capturing: list[int] = []
        self.pools: list[int] = []
        #: the capture has been broken
        self.is_invalid = False

    @contextlib.contextmanager
    def graph(self, graph: Graph, pool: int) -> Iterator[None]:
        self.stream = "the capture's"
        graph.begin(pool)
        try:
            yield
        finally:
            graph.end(pool)
            self.stream = "the person's"

    def wait(self) -> None:
        self.is_invalid = True
        raise RuntimeError("operation not permitted when stream is capturing")

    def end_pool(self, device: int, pool: int) -> None:
        if pool not in self.capturing:
            raise RuntimeError("not currently recording to mempool_id")
        self.capturing.remove(pool)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    gpu = Gpu()
    stand_in = SimpleNamespace(
        default_generators=(gpu.generator,),
        current_device=lambda: 0,
        current_stream=lambda: gpu.stream,
        set_stream=lambda stream: setattr(gpu, "stream", stream),
        graph_pool_handle=lambda: 1,
        graphs=SimpleNamespace(graph=gpu.graph),
    )
    monkeypatch.setattr(torch, "cuda", stand_in)
    monkeypatch.setattr(
        torch._C, "_cuda_endAllocateToPool", gpu.end_pool, raising=False
    )
    monkeypatch.setattr(
        torch._C,
        "_cuda_releasePool",
        lambda device, pool: gpu.pools.remove(pool),
        raising=False,
    )
    return gpu


def test_a_capture_that_fails_leaves_nothing_behind(gpu: Gpu) -> None:
    graph: Any = Graph(gpu)
    with (
        pytest.raises(RuntimeError, match="not permitted"),
        OwnRandomState().in_use(),
        capturing(graph),
    ):
        gpu.wait()
    assert gpu.generator.draw() == 8
    assert gpu.stream == "the person's"
    assert graph.was_reset
    assert gpu.capturing == gpu.pools == []


def test_older_names_of_torch_end_it_too(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C, "_cuda_endAllocateToPool")
    older = "_cuda_endAllocateCurrentStreamToPool"
    monkeypatch.setattr(torch._C, older, gpu.end_pool, raising=False)
    graph: Any = Graph(gpu)
    with pytest.raises(RuntimeError, match="not permitted"), capturing(graph):
        gpu.wait()
    assert gpu.capturing == []


def test_an_interrupt_is_told_as_one(gpu: Gpu) -> None:
    graph: Any = Graph(gpu)
    with pytest.raises(KeyboardInterrupt), capturing(graph):
        gpu.is_invalid = True
        raise KeyboardInterrupt
    assert gpu.capturing == []


def test_an_error_that_breaks_no_capture_is_told_and_the_graph_dropped(
    gpu: Gpu,
) -> None:
    graph: Any = Graph(gpu)
    with pytest.raises(ValueError, match="of the cell"), capturing(graph):
        raise ValueError("of the cell")
    assert graph.was_reset
    # the graph has its pool, and gives it back itself
    assert gpu.pools == [1]


def test_replays_draw_what_the_person_would_and_leave_the_persons_state(
    gpu: Gpu,
) -> None:
    random, graph = OwnRandomState(), Graph(gpu)
    made: Any = graph
    with random.in_use(), capturing(made):
        pass
    for _ in range(2):
        with random.in_use():
            assert graph.replay() == 8
            assert gpu.generator.get_state() == 8
        assert gpu.generator.get_state() == 7
    assert gpu.generator.draw() == 8
    with random.in_use():
        assert graph.replay() == 9


def test_an_edit_whose_capture_fails_leaves_the_persons_random_numbers(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook.kernel.trying.graph.used_devices", lambda: [0])
    monkeypatch.setattr(torch.cuda, "graph", None, raising=False)
    captures, graph = Captures(), Graph(gpu)
    with captures.taken_back():
        assert gpu.generator.draw() == 8
    assert gpu.generator.get_state() == 8
    cuda: Any = torch.cuda
    with (
        pytest.raises(RuntimeError, match="not permitted"),
        captures.taken_back(),
        cuda.graph(graph),
    ):
        gpu.wait()
    assert gpu.generator.draw() == 9
