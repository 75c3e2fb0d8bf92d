"""Writes programs by hand, as a learner's Python would have them recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated import program as recorded
from warpbook_labs.engines.simulated.judging.judge import judge
from warpbook_labs.engines.simulated.messages import Buffer, Verdict
from warpbook_labs.engines.simulated.program import HOST, Place, Program, View

#: ATen calls by the names that tests give them
CALLS = {
    "neg": ("aten.neg.default", '[[{"r": 0}], {}]'),
    "sqrt": ("aten.sqrt.default", '[[{"r": 0}], {}]'),
    "erf": ("aten.erf.default", '[[{"r": 0}], {}]'),
    "sum": ("aten.sum.default", '[[{"r": 0}], {}]'),
    "add": ("aten.add.Tensor", '[[{"r": 0}, {"r": 1}], {}]'),
    "mul": ("aten.mul.Tensor", '[[{"r": 0}, {"r": 1}], {}]'),
    "matmul": ("aten.mm.default", '[[{"r": 0}, {"r": 1}], {}]'),
    "topk": ("aten.topk.default", '[[{"r": 0}, 1048576], {}]'),
}


def dense(storage: int, shape: tuple[int, ...], dtype: str = "float32") -> View:
    strides = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    return View(storage, dtype, shape, tuple(strides))


def rows(view: View, begin: int, end: int) -> View:
    """Some of the first dimension."""
    shape = (end - begin, *view.shape[1:])
    offset = view.offset + begin * view.strides[0]
    return View(view.storage, view.dtype, shape, view.strides, offset)


def columns(view: View, begin: int, end: int) -> View:
    """Some of the last dimension."""
    shape = (*view.shape[:-1], end - begin)
    offset = view.offset + begin * view.strides[-1]
    return View(view.storage, view.dtype, shape, view.strides, offset)


class Writer:
    """A program that grows; each thing that is asked has a line of its own."""

    def __init__(self, **buffers: tuple[int | tuple[int, ...], Place, str]) -> None:
        """Begin with buffers: size, place, and "in", "out" or "inout"."""
        self.buffers = []
        self.views: dict[str, View] = {}
        self.said: list[recorded.Instruction] = []
        self.line = 0
        self._storages = 0
        for name, (size, place, kind) in buffers.items():
            shape = (size,) if isinstance(size, int) else size
            self.views[name] = dense(self._storage(), shape)
            is_out = kind.endswith("out")
            is_in = kind.startswith("in")
            self.buffers.append(Buffer(name, place, "float32", shape, is_in, is_out))

    def _storage(self) -> int:
        self._storages += 1
        return self._storages

    def _line(self) -> int:
        self.line += 1
        return self.line

    def call(self, number: int = 0) -> None:
        self.said.append(recorded.BeginCall(number))

    def new(
        self,
        size: int | tuple[int, ...],
        place: Place = "device",
        stream: int = 0,
        dtype: str = "float32",
    ) -> View:
        shape = (size,) if isinstance(size, int) else size
        view = dense(self._storage(), shape, dtype)
        size_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        self.said.append(
            recorded.Allocate(view.storage, size_bytes, place, stream, self._line())
        )
        return view

    def release(self, view: View) -> None:
        self.said.append(recorded.Release(view.storage))

    def use_on(self, view: View, stream: int) -> None:
        self.said.append(recorded.UseOn(view.storage, stream))

    def launch(
        self,
        operation: str,
        reads: Sequence[View],
        writes: Sequence[View],
        stream: int = 0,
        numbers: tuple[float, ...] = (),
        call: str = "[[], {}]",
    ) -> int:
        line = self._line()
        name, call = CALLS.get(operation, (operation, call))
        views = tuple(reads), tuple(writes)
        self.said.append(recorded.Launch(name, stream, *views, numbers, line, call))
        return line

    def on_host(self, operation: str, reads: Sequence[View], write: View) -> int:
        return self.launch(operation, reads, [write], HOST)

    def copy(
        self, source: View, target: View, stream: int = 0, wait: bool = False
    ) -> int:
        line = self._line()
        self.said.append(recorded.Copy(source, target, stream, not wait, line))
        return line

    def read(self, view: View, what: str = "item", stream: int = 0) -> int:
        line = self._line()
        self.said.append(recorded.Read(view, what, line, stream))
        return line

    def record(self, event: int, stream: int) -> None:
        self.said.append(recorded.RecordEvent(event, stream, self._line()))

    def wait(self, event: int, stream: int) -> None:
        self.said.append(recorded.WaitEvent(event, stream, self._line()))

    def then(self, first: int, second: int, event: int = 99) -> None:
        """Let the second stream wait for the first."""
        self.record(event, first)
        self.wait(event, second)

    def synchronize(self, of: Any = "device", number: int = 0) -> int:
        line = self._line()
        self.said.append(recorded.Synchronize(of, number, line))
        return line

    def capture(self, graph: int, stream: int = 1) -> None:
        self.said.append(recorded.BeginCapture(graph, stream, self._line()))

    def captured(self, graph: int) -> None:
        self.said.append(recorded.EndCapture(graph, self._line()))

    def replay(self, graph: int, stream: int = 0) -> int:
        line = self._line()
        self.said.append(recorded.Replay(graph, stream, line))
        return line

    def program(self) -> Program:
        return Program(dict(self.views), tuple(self.said))

    def judged(self, *calls: Mapping[str, NDArray[Any]]) -> Any:
        """Judge it; outputs as numbers."""
        verdict = judge(self.program(), self.buffers, calls)
        shapes = {buffer.name: buffer.shape for buffer in self.buffers}
        outputs = [
            {
                name: np.frombuffer(data, np.float32).reshape(shapes[name])
                for name, data in call.items()
            }
            for call in verdict.outputs
        ]
        return msgspec.structs.replace(verdict, outputs=outputs)


def numbers(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Draw inputs."""
    drawn: NDArray[np.float32] = np.random.default_rng(seed).standard_normal(
        count, np.float32
    )
    return drawn


def kinds(judged: Verdict) -> list[str]:
    return [finding.kind for finding in judged.findings]
