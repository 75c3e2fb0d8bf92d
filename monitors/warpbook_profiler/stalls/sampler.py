"""Samples kernels from a beginning to an end, and lets the GPU go whatever happens."""

from __future__ import annotations

import contextlib
import ctypes
import math
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warpbook_profiler.stalls.cupti import (
    RECORD,
    Buffer,
    Cupti,
    NotSampled,
    cupti,
)
from warpbook_profiler.stalls.driver import Context, Driver

#: program counters that a buffer has room for
_RECORDS = 4096
#: on the GPU, for samples that are yet to be read
_HARDWARE_BYTES = 64 << 20
#: the buffers are read so often
_PAUSE_S = 0.02
#: samples of the shortest kernel that matters, and at most of all
_ENOUGH, _MOST = 30_000, 8_000_000
#: kernels with a smaller share of the time need no lines
_LEAST_SHARE = 0.005
_LEAST_PERIOD, _MOST_PERIOD = 6, 20
#: cycles in a second of all multiprocessors of an H100 or H200, at 1.8 GHz
_CYCLES_PER_S = 132 * 1.8e9


#: CUPTI has one sampler for each context
_in_use = threading.Lock()


@dataclass
class KernelSamples:
    """All samples of one function of one cubin."""

    launches: set[tuple[int, int]] = field(default_factory=set)
    #: by the offset of an instruction, how often each reason was seen
    offsets: dict[int, Counter[str]] = field(default_factory=dict)


@dataclass
class Samples:
    """All that was sampled from a beginning to an end."""

    device: str
    period_cycles: int
    seconds: float = 0.0
    dropped: int = 0
    #: of kernels that were loaded while CUPTI did not see it
    unseen: int = 0
    #: by CUPTI's number of the cubin, and the name of the function
    kernels: dict[tuple[int, str], KernelSamples] = field(default_factory=dict)


def period_for(times_ns: Sequence[int]) -> int:
    """Return a period for `sampling`, from what each kernel takes in all."""
    least_ns = _LEAST_SHARE * sum(times_ns)
    shortest_ns = min((one for one in times_ns if one >= least_ns), default=0)
    enough_ns = max(shortest_ns / _ENOUGH, sum(times_ns) / _MOST)
    cycles = _CYCLES_PER_S * enough_ns / 1e9
    return min(max(int(math.log2(max(cycles, 1))), _LEAST_PERIOD), _MOST_PERIOD)


@contextlib.contextmanager
def sampling(period: int, library: Cupti | None = None) -> Iterator[Samples]:
    """Sample what this process runs on its GPUs meanwhile.

    Kernels run one after the other meanwhile, a launch about a millisecond longer.

    Args:
        period: a warp of each multiprocessor is sampled every two to the power of this
            many cycles.
        library: CUPTI; if left out, the one that is here.

    Raises:
        NotSampled: there are no samples. What the block itself raises goes on.
    """
    if not _in_use.acquire(blocking=False):
        raise NotSampled("held", "Kernels of this process are already being sampled")
    try:
        library, driver = library or cupti(), Driver()
        contexts = driver.contexts()
        for context in contexts:
            driver.wait(context)
        sampler = _Sampler(library, driver, contexts, period)
        began_s = time.monotonic()
        try:
            sampler.begin()
            yield sampler.samples
        except BaseException:
            sampler.end(is_read=False)
            raise
        sampler.end(is_read=True)
        sampler.samples.seconds = time.monotonic() - began_s
    finally:
        _in_use.release()


class _Sampler:
    def __init__(
        self,
        library: Cupti,
        driver: Driver,
        contexts: Sequence[Context],
        period: int,
    ) -> None:
        self.samples = Samples(contexts[0].device, 1 << period)
        self._library = library
        self._driver = driver
        self._contexts = contexts
        self._period = period
        #: those that may be sampled
        self._enabled: list[Context] = []
        self._reasons: dict[int, str] = {}
        #: CUPTI's own, by context
        self._kept: list[Buffer] = []
        self._buffer: Buffer | None = None
        #: CUPTI's names of functions by their address, which it never frees
        self._functions: dict[int, str] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._problem: NotSampled | None = None
        self._reader = threading.Thread(target=self._read_often, daemon=True)

    def begin(self) -> None:
        for context in self._contexts:
            # noted before: an interrupt comes when the call is over
            self._enabled.append(context)
            try:
                self._library.enable(context.handle)
            except NotSampled:
                # it may be another tool's
                self._enabled.pop()
                raise
            self._reasons = self._library.reasons(context.handle)
            own = Buffer(_RECORDS, len(self._reasons))
            self._kept.append(own)
            self._library.configure(
                context.handle, self._reasons, self._period, _HARDWARE_BYTES, own
            )
        self._buffer = Buffer(_RECORDS, len(self._reasons))
        self._reader.start()

    def end(self, is_read: bool) -> None:
        """Let the GPU go, after what was sampled is read."""
        try:
            self._is_over.set()
            if is_read:
                for context in self._contexts:
                    self._driver.wait(context)
                    self._read(context)
        finally:
            problem = self._let_go()
        problem = self._problem or problem
        if is_read and problem is not None:
            raise problem

    def _let_go(self) -> NotSampled | None:
        """Disable all whatever is interrupted, and return the first problem."""
        problem: NotSampled | None = None
        is_interrupted = False
        while self._enabled:
            try:
                self._is_over.set()
                with self._lock:
                    self._library.disable(self._enabled[-1].handle)
                self._enabled.pop()
            except NotSampled as raised:
                problem = problem or raised
                self._enabled.pop()
            except KeyboardInterrupt:
                is_interrupted = True
        if self._reader.ident is not None:
            self._reader.join()
        self._library.let_go()
        if is_interrupted:
            raise KeyboardInterrupt
        return problem

    def _read_often(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            for context in self._contexts:
                try:
                    self._read(context)
                except NotSampled as problem:
                    if not self._is_over.is_set():
                        self._problem = problem
                    return

    def _read(self, context: Context) -> None:
        assert self._buffer is not None
        with self._lock:
            while True:
                self._library.read(context.handle, self._buffer)
                data = self._buffer.data
                self.samples.dropped += data.dropped
                self.samples.unseen += data.others
                self._take(context, self._buffer)
                if not data.remaining or not data.count:
                    return

    def _take(self, context: Context, buffer: Buffer) -> None:
        for _, crc, offset, _, _, name, count, reasons, launch in struct.iter_unpack(
            RECORD, buffer.records
        ):
            function = self._functions.get(name)
            if function is None:
                function = ctypes.string_at(name).decode(errors="replace")
                self._functions[name] = function
            kernel = self.samples.kernels.setdefault((crc, function), KernelSamples())
            kernel.launches.add((context.handle, launch))
            seen = kernel.offsets.setdefault(offset, Counter())
            pairs = ctypes.string_at(reasons, count * 8)
            for number, samples in struct.iter_unpack("<II", pairs):
                if samples:
                    seen[self._reasons.get(number, "unknown")] += samples
