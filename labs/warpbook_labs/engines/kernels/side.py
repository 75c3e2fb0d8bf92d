"""One side of timed calls: a program with its memory, and the inputs of a call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from warpbook_labs.cases.preparation import Arrays, launches
from warpbook_labs.engines.kernels.buffers import Arena
from warpbook_labs.engines.kernels.inputs import Call
from warpbook_labs.gpu.driver import Prepared
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import LoadedLab

#: of one call
PATIENCE_S = 10.0
T = TypeVar("T")
#: what looks on while a call runs, and what it saw
Sampling = Callable[[], AbstractContextManager[T]]


class Source(NamedTuple):
    """A program and how it is launched."""

    rule: Rule
    cubin: bytes


class Pool(NamedTuple):
    """What inputs are put together from, on the GPU too."""

    values: NDArray[Any]
    address: int
    digest: int


class Kind(NamedTuple):
    """Inputs of one kind of values, and what calls' inputs are put together from."""

    drawn: Arrays
    pools: dict[str, Pool]


class ProgramSide:
    """A program with its memory, which another may use in its turn."""

    def __init__(
        self,
        tools: Tools,
        loaded: LoadedLab,
        sizes: Mapping[str, int],
        kinds: Mapping[str, Kind],
        source: Source,
        arena: Arena,
    ) -> None:
        self._tools, self._kinds, self._source, self.arena = tools, kinds, source, arena
        # numbers that are handed over as they are belong to the kind of values
        self._launches = {
            kind: launches(loaded, source.rule, sizes, given.drawn)
            for kind, given in kinds.items()
        }
        self._kind = next(iter(kinds))

    def ready(self, call: Call) -> None:
        """Poison its memory, and put inputs there."""
        self.arena.renew()
        self._kind = call.kind
        for name, pool in self._kinds[call.kind].pools.items():
            to = self.arena.addresses[name]
            item = pool.values.itemsize
            count = self.arena.places[name].size_bytes // item
            length = len(pool.values)
            fill = self._tools.fill
            fill(to, pool.address, length, item, count, call.keys[name])

    def call_ns(self) -> float:
        """Run it once, as a program that nobody has run before."""
        with self._loaded() as launches:
            self._tools.flush()
            return self._tools.device.timed_ns(launches, PATIENCE_S)

    def call(self, sampling: Sampling[T]) -> T:
        """Run it once in the same way, sampled instead of timed."""
        device = self._tools.device
        with self._loaded() as launches:
            with sampling() as samples:
                for launch in launches:
                    device.launch(launch)
                device.wait(PATIENCE_S)
            return samples

    @contextlib.contextmanager
    def _loaded(self) -> Iterator[list[Prepared]]:
        device = self._tools.device
        program = device.load(self._source.cubin)
        addresses = self.arena.addresses
        yield [
            device.prepare(program, launch, addresses)
            for launch in self._launches[self._kind]
        ]
        # not after a crash or a hang: the driver would wait for what does not end
        program.unload()
