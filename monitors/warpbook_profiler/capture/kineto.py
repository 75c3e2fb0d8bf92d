"""Records what a cell does, with torch's own profiler."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch.autograd.profiler import profile, record_function

from warpbook_profiler.capture import torch_gpus
from warpbook_profiler.capture.cupti import let_go
from warpbook_profiler.capture.inductor import kernel_lines
from warpbook_profiler.capture.kineto_events import read_events
from warpbook_profiler.events.allocations import Allocations, read_allocations
from warpbook_profiler.events.columns import ON_GPU, Columns
from warpbook_profiler.events.own_marks import AROUND, MARK, marked_ns, of_the_cell
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.model.cell_profile import SetUp
from warpbook_profiler.model.clock import CpuClock
from warpbook_profiler.model.errors import CaptureFailed, ProfilerBusy
from warpbook_profiler.model.limits import LIMITS_KEY
from warpbook_profiler.model.memory import Counts, highest, memory_use
from warpbook_profiler.model.use import COLLECTIONS_KEY, KEY, CpuUse

#: the oldest: all objects are looked at, which takes long where there are many
_FULL = 2
#: a recording with more tells of these
_MOST = 10_000


class GarbageClock:
    """Notes full collections from `start` to `stop`."""

    def __init__(self) -> None:
        """Note nothing yet."""
        self._spans_ns: list[tuple[int, int]] = []
        self._began_ns = 0

    def start(self) -> None:
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)

    def since(self, start_ns: int) -> tuple[tuple[int, int], ...]:
        """Return when collections began after a time (Unix), and how long they took."""
        return tuple(
            (began_ns - start_ns, ended_ns - began_ns)
            for began_ns, ended_ns in self._spans_ns[:_MOST]
            if began_ns >= start_ns
        )

    def _note(self, phase: str, about: dict[str, Any]) -> None:
        if about["generation"] < _FULL:
            return
        if phase == "start":
            self._began_ns = time.time_ns()
        elif self._began_ns:
            self._spans_ns.append((self._began_ns, time.time_ns()))


_CHATTER = (b"USDT:", b"STAGE:", b"INFO:")

_has_started_before = False
_has_told_defaults = False
_UNMEASURED = (
    "Times of changes are the defaults of an H200: `warpbook limits` measures this "
    "machine's, in about a minute."
)


class Capture:
    """One recording, started and stopped on the thread that runs the cell.

    On another thread the profiler gets no event of the GPU from its second
    recording on, without a word.
    """

    def __init__(self, memory: bool = False, shapes: bool = True) -> None:
        """Prepare; nothing is recorded yet.

        Args:
            memory: record each allocation too, which costs some microseconds each.
            shapes: record what each operator is called with, which costs less than one.
        """
        self._memory = memory
        self._shapes = shapes
        #: what the allocator of each GPU had counted before
        self._before: list[Counts] = []
        self._profiler: Any = None
        self._around: Any = None
        #: torch's objects, let go of with this one: that takes as long as reading a
        #: third of them, and the report need not wait for it
        self._events: Sequence[Any] = ()
        self._start_ns = 0
        self._cpu = CpuClock()
        self._garbage = GarbageClock()
        #: what was taken of the CPU until a time that the code may have ended at
        self._used: tuple[int, CpuUse] | None = None
        self._starting_ns = 0
        self._set_up: SetUp | None = None

    def start(self) -> None:
        """Begin to record; the calling thread's work is waited for first.

        Raises:
            ProfilerBusy: a profiler runs already.
            CaptureFailed: torch refused.
        """
        global _has_started_before
        if torch.autograd._profiler_enabled():
            raise ProfilerBusy(
                "A profiler of torch is already running in this kernel. Stop it "
                "(its `stop()`, or leave its `with`), then profile this cell again."
            )
        began_ns = time.perf_counter_ns()
        try:
            if torch.cuda.is_available():
                # or Kineto, set up before CUDA is, sees no kernel of any later cell
                # and hangs the process at its end (an H200 with torch 2.11)
                torch.cuda.init()
            with_cuda_ns = time.perf_counter_ns()
            torch_gpus.wait_for_gpu()
            self._before = torch_gpus.allocator_counts()
            self._profiler = _make_profiler(self._memory, self._shapes)
            with _without_chatter():
                self._profiler.__enter__()
                torch_gpus.launch_once()
            for _ in range(2):
                with record_function(MARK):
                    pass
            if self._memory:
                self._around = record_function(AROUND)
                self._around.__enter__()
        except RuntimeError as problem:
            _disable(self._profiler)
            raise CaptureFailed(f"torch's profiler did not start: {problem}") from None
        except (CaptureFailed, KeyboardInterrupt):
            _disable(self._profiler)
            raise
        self._garbage.start()
        started_ns = time.perf_counter_ns()
        self._starting_ns = started_ns - began_ns
        if not _has_started_before:
            self._set_up = SetUp(
                imports_ns=0,
                cuda_ns=with_cuda_ns - began_ns,
                profiler_ns=started_ns - with_cuda_ns,
            )
            _has_started_before = True
        self._begin()

    def code_begins(self) -> None:
        """Let the window begin now: what came before is not the code's."""
        with record_function(MARK):
            pass
        self._begin()

    def _begin(self) -> None:
        self._start_ns = time.time_ns()
        self._cpu = CpuClock()

    def code_ends(self, at_ns: int) -> None:
        """Note what was taken of the CPU; what follows may not be the code's.

        Args:
            at_ns: now (Unix time); `stop` may name it as the code's end.
        """
        self._used = at_ns, self._cpu.use(at_ns - self._start_ns)

    def stop(
        self,
        code_end_ns: int | None = None,
        reads: Callable[[int], object] | None = None,
    ) -> tuple[Columns, Run]:
        """Wait for the GPU, end the recording and read it.

        Args:
            code_end_ns: when the code ended, unless it did just now (Unix time).
            reads: is called with the number of events before they are read.

        Raises:
            CaptureFailed: the recording is not this cell's, or there is none.
        """
        told_end_ns = code_end_ns
        code_end_ns = told_end_ns or time.time_ns()
        cpu = self._cpu.use(code_end_ns - self._start_ns)
        if self._used is not None and self._used[0] == told_end_ns:
            cpu = self._used[1]
        collections = self._garbage.since(self._start_ns)
        try:
            torch_gpus.wait_for_gpu()
            end_ns = time.time_ns()
            began_ns = time.perf_counter_ns()
            if not torch.autograd._profiler_enabled():
                raise CaptureFailed(
                    "The cell ran its own profiler, which ended this one. Use only one "
                    "of the two."
                )
            # for whoever reads the trace if it is saved
            for key, told in ((KEY, cpu), (COLLECTIONS_KEY, collections)):
                metadata = msgspec.json.encode(told).decode()
                torch.autograd._add_metadata_json(key, metadata)
            gpus, notes = _limits()
            self._end()
        except RuntimeError as problem:
            raise CaptureFailed(f"torch's profiler did not finish: {problem}") from None
        except (CaptureFailed, KeyboardInterrupt):
            self.discard()
            raise
        results = self._profiler.kineto_results
        self._events = results.events()
        if reads is not None:
            reads(len(self._events))
        columns = _of_the_cell(read_events(self._events, self._shapes))
        if told_end_ns is not None:
            # the wait for the GPU above was over too late to tell when it was done
            done_ns = columns.only(*ON_GPU).end_ns.max(initial=told_end_ns)
            end_ns = min(end_ns, int(done_ns))
        allocations: tuple[Allocations, ...] = ()
        if self._memory:
            tree = results.experimental_event_tree()
            allocations = read_allocations(tree, without=AROUND)
        memory = memory_use(
            self._before,
            torch_gpus.allocator_counts(),
            {allocation.device: allocation.most_bytes for allocation in allocations}
            if self._memory
            else None,
        )
        stopping_ns = time.perf_counter_ns() - began_ns
        return columns, Run(
            start_ns=self._start_ns,
            code_end_ns=code_end_ns,
            end_ns=end_ns,
            profiler_ns=self._starting_ns + stopping_ns,
            set_up=self._set_up,
            gpu_name=torch_gpus.gpu_name(),
            gpus=gpus,
            notes=notes,
            cuda_used=torch.cuda.is_initialized(),
            peak_allocated_bytes=highest(
                gpu_memory.peak_allocated_bytes for gpu_memory in memory
            ),
            peak_reserved_bytes=highest(
                gpu_memory.peak_reserved_bytes for gpu_memory in memory
            ),
            memory=memory if self._memory else (),
            allocations=allocations,
            cpu=cpu,
            collections=collections,
            kernel_lines=kernel_lines(),
        )

    def discard(self) -> None:
        """End the recording, whatever it holds, and read nothing of it."""
        with suppress(RuntimeError):
            self._end()

    def _end(self) -> None:
        self._garbage.stop()
        around, self._around = self._around, None
        if around is not None:
            around.__exit__(None, None, None)
        _disable(self._profiler)

    def save(self, path: str) -> None:
        """Write what was recorded as a Chrome trace, after `stop`.

        Before any other profiler starts in this process: Kineto keeps the GPU's times
        as ticks, and counts them from the start of the newest recording.

        Raises:
            CaptureFailed: torch did not write it.
        """
        file = Path(path)
        try:
            # or a trace that was there before would be taken for this one
            file.unlink(missing_ok=True)
            with _without_chatter():
                self._profiler.export_chrome_trace(path)
            is_written = file.stat().st_size > 0
        except (OSError, RuntimeError) as problem:
            raise CaptureFailed(f"The trace was not written: {problem}") from None
        if not is_written:
            raise CaptureFailed(f"torch could not write the trace to {path}.")


def _limits() -> tuple[tuple[GpuLimits, ...], tuple[str, ...]]:
    """Return the GPUs, and what to say of their limits: that none are, only once.

    Those that were measured go into the recording, for whoever reads it if it is saved.
    """
    global _has_told_defaults
    gpus, notes = torch_gpus.limits()
    measured = next((gpu.measured for gpu in gpus if gpu.measured), None)
    if measured is not None:
        text = msgspec.json.encode(measured).decode()
        torch.autograd._add_metadata_json(LIMITS_KEY, text)
    elif gpus and not notes and not _has_told_defaults:
        notes, _has_told_defaults = (_UNMEASURED,), True
    return gpus, notes


class _Profiler(profile):  # type: ignore[misc]
    """torch's, which before 2.5 makes an object of each event when it ends."""

    def _parse_kineto_results(self, *_: Any, **__: Any) -> list[Any]:
        return []


def _make_profiler(memory: bool, shapes: bool) -> Any:
    # torch.profiler.profile is a coat over this one that imports 820 modules first
    options: dict[str, Any] = {}
    config = torch._C._profiler._ExperimentalConfig
    if "expose_kineto_event_metadata" in (config.__init__.__doc__ or ""):
        # the sizes of copies are nowhere else
        options["experimental_config"] = config(expose_kineto_event_metadata=True)
    return _Profiler(
        use_kineto=True,
        use_device="cuda" if torch.cuda.is_available() else None,
        profile_memory=memory,
        record_shapes=shapes,
        **options,
    )


def _disable(profiler: Any) -> None:
    """End a recording for good; a profiler that is left on allows no other."""
    if profiler is None or not torch.autograd._profiler_enabled():
        return
    # it would wait for the GPU once more, and fail before the end where that fails
    profiler.use_device = None
    with _without_chatter(), let_go():
        try:
            profiler.__exit__(None, None, None)
        except KeyboardInterrupt:
            if torch.autograd._profiler_enabled():
                profiler.__exit__(None, None, None)
            raise


def _of_the_cell(columns: Columns) -> Columns:
    begun_ns = marked_ns(columns)
    if begun_ns is None:
        raise CaptureFailed(
            "The cell started its own profiler and left it running, which ended this "
            "one. It has been stopped; use only one of the two."
        )
    return of_the_cell(columns, begun_ns)


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Hold back what Kineto prints at each start and stop, and nothing else.

    It prints from C++, and reads its log level when torch is imported, which
    was long ago.
    """
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            caught.seek(0)
            for line in caught:
                if not line.startswith(_CHATTER):
                    os.write(2, line)
