"""Stands for `driver.Device` where there is no GPU: memory is one array of bytes.

Trusted kernels do here what `test_trusted_kernels.py` shows that they do; kernels of
learners are Python functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from warpbook_labs.cases import execution
from warpbook_labs.gpu import kernels

#: what a submission's program is here
LEARNER = b"a learner's program"
_BEGIN = 1 << 40

#: (GPU, arguments by place): addresses and numbers
Run = Callable[["FakeGpu", "list[Any]"], None]


class Ready(NamedTuple):
    """A launch that was made ready."""

    run: Run
    arguments: list[Any]
    is_learner: bool


class Loaded:
    """A program; the first that is loaded is the trusted one."""

    def __init__(self, image: bytes, is_trusted: bool) -> None:
        self.image, self.is_trusted = image, is_trusted

    def unload(self) -> None:
        pass


class FakeGpu:
    """Memory, and kernels in Python."""

    architecture = "sm_90"
    name = "a fake"
    l2_bytes = 4096
    free_bytes = 1 << 40

    def __init__(self, learner: Run, right: Run) -> None:
        self.memory = np.zeros(64 << 20, np.uint8)
        self.learner, self.right = learner, right
        #: begin of each allocation
        self.allocated: list[int] = []
        self.calls_of_learner = 0
        #: what calls take
        self.learner_ns = self.own_ns = 100e3
        self._next, self._loaded = 0, 0

    def view(self, address: int, count: int, dtype: Any) -> Any:
        begin = address - _BEGIN
        size_bytes = count * np.dtype(dtype).itemsize
        return self.memory[begin : begin + size_bytes].view(dtype)

    def allocate(self, size_bytes: int) -> int:
        address = _BEGIN + self._next
        self._next += -(-size_bytes // 4096) * 4096
        assert self._next <= len(self.memory)
        self.allocated.append(address)
        return address

    def free(self, address: int) -> None:
        self._next = address - _BEGIN
        self.allocated.remove(address)

    def upload(self, address: int, values: Any) -> None:
        held = np.ascontiguousarray(values)
        self.view(address, held.nbytes, np.uint8)[:] = held.reshape(-1).view(np.uint8)

    def download(self, address: int, size_bytes: int) -> Any:
        return self.view(address, size_bytes, np.uint8).copy()

    def copy(self, to: int, held: int, size_bytes: int) -> None:
        of = self.view(held, size_bytes, np.uint8)
        self.view(to, size_bytes, np.uint8)[:] = of

    def pinned(self, size_bytes: int) -> Any:
        return np.zeros(size_bytes, np.uint8)

    def assembled(self, image: bytes) -> bytes:
        return image

    def load(self, image: bytes) -> Loaded:
        self._loaded += 1
        return Loaded(image, self._loaded == 1)

    def prepare(
        self, program: Loaded, launch: execution.Launch, addresses: dict[str, int]
    ) -> Ready:
        given: list[Any] = []
        for argument in launch.arguments:
            if isinstance(argument, execution.BufferArgument):
                given.append(addresses[argument.name])
            elif isinstance(argument, execution.IntegerArgument):
                given.append(argument.value)
            else:
                given.append(float(np.frombuffer(argument.data, np.float64)[0]))
        if program.is_trusted:
            return Ready(_TRUSTED[launch.kernel], given, False)
        is_learner = program.image == LEARNER
        return Ready(self.learner if is_learner else self.right, given, is_learner)

    def launch(self, ready: Ready) -> None:
        self.calls_of_learner += ready.is_learner
        ready.run(self, ready.arguments)

    def wait(self, patience_s: float) -> None:
        pass

    def forget_kept_lines(self) -> None:
        pass

    def timed_ns(self, launches: Sequence[Ready], patience_s: float) -> float:
        for launch in launches:
            self.launch(launch)
        return self.learner_ns if launches[0].is_learner else self.own_ns

    def copied_both_ways_ns(self, address: int, held: Any, patience_s: float) -> float:
        return self.own_ns


def _poison(gpu: FakeGpu, given: list[Any]) -> None:
    address, count, key = given
    gpu.view(address, 4 * count, np.uint8)[:] = kernels.poison(4 * count, key)


def _tell(gpu: FakeGpu, place: int, wrong: Any) -> None:
    places = np.flatnonzero(wrong)
    if len(places):
        held = gpu.view(place, 2, np.uint64)
        held[0] = min(int(held[0]), int(places[0]))
        held[1] += len(places)


def _untouched(gpu: FakeGpu, given: list[Any]) -> None:
    arena, begin, end, key, place = given
    held = gpu.view(arena + begin, end - begin, np.uint8)
    wrong = np.zeros(end, np.bool_)
    wrong[begin:] = held != kernels.poison(end - begin, key, begin)
    _tell(gpu, place, wrong)


def _fill(gpu: FakeGpu, given: list[Any]) -> None:
    to, pool, count, places, chunk, key, item = given
    dtype = f"u{item}"
    held = gpu.view(pool, places + chunk - 1, dtype)
    gpu.view(to, count, dtype)[:] = kernels.filled(held, count, key)


def _compare(gpu: FakeGpu, given: list[Any]) -> None:
    arena, at, right, count, item, kind, bound, key, place = given
    dtype = f"{chr(kind)}{item}"
    got, want = gpu.view(arena + at, count, dtype), gpu.view(right, count, dtype)
    was = kernels.poison(count * item, key, at).view(dtype)
    with np.errstate(invalid="ignore"):
        near = np.isclose(got, want, rtol=0, atol=bound, equal_nan=True)
    bits = f"u{item}"
    is_seen = chr(kind) == "f" or item >= 4
    _tell(gpu, place, ~near | is_seen & (got.view(bits) == was.view(bits)))


def _digest(gpu: FakeGpu, given: list[Any]) -> None:
    address, count, key, total = given
    words = gpu.view(address, count, np.uint32)
    places = np.arange(count, dtype=np.uint32)
    mixed = kernels.mix(words ^ kernels.mix(places ^ np.uint32(key))).astype(np.uint64)
    gpu.view(total, 1, np.uint64)[:] += mixed.sum(dtype=np.uint64)


_TRUSTED: dict[str, Run] = {
    "poison": _poison,
    "untouched": _untouched,
    "fill": _fill,
    "compare": _compare,
    "digest": _digest,
    "flush": lambda gpu, given: None,
    "spin": lambda gpu, given: None,
}
