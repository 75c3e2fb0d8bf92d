"""Records what a cell does, with torch's own profiler.

The raw events are read from the profiler's memory. torch's `events()` and
`key_averages()` are never called: they take 40-70 µs per event.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.autograd.profiler import profile, record_function

from warpbook_monitors.trace.columns import (
    KINETO_CATEGORIES,
    NONE,
    Category,
    Columns,
    Int32s,
    Int64s,
    KernelShape,
    interned,
    make_columns,
)
from warpbook_monitors.trace.errors import CaptureFailed, ProfilerBusy
from warpbook_monitors.trace.limits import measured_ceilings
from warpbook_monitors.trace.memory import Counts, highest, memory_use
from warpbook_monitors.trace.run import GpuLimits, Run

#: The first event of every capture: without it the events are somebody else's.
_MARK = "warpbook: start of the cell"
_FIRST_CUDA_WITH_SAFE_TEARDOWN = (12, 6)
#: how Kineto names an allocation
_MEMORY = "[memory]"
_BYTES = re.compile(r'"bytes": (\d+)')
_SHAPE = (
    re.compile(r'"grid": \[\d+, ?\d+, ?\d+\]'),
    re.compile(r'"block": \[\d+, ?\d+, ?\d+\]'),
    re.compile(r'"registers per thread": \d+'),
    re.compile(r'"shared memory": \d+'),
)
_NUMBER = re.compile(r"\d+")
_API_NAME = re.compile(r"(cuda|cu)[A-Z]\w*$")
_CHATTER = (b"USDT:", b"STAGE:", b"INFO:")

_has_started_before = False


class Capture:
    """One recording, started and stopped on the thread that runs the cell.

    On another thread the profiler gets no event of the GPU from its second
    recording on, without a word.
    """

    def __init__(self, memory: bool = False) -> None:
        """Prepare; nothing is recorded yet.

        Args:
            memory: record each allocation too, which costs some microseconds each.
        """
        self._memory = memory
        #: what the allocator of each GPU had counted before
        self._before: list[Counts] = []
        self._profiler: Any = None
        self._start_ns = 0
        self._start_ms = 0.0
        self._first_start_ms: float | None = None

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
        began = time.perf_counter()
        _let_cupti_go_after_each_profile()
        try:
            if torch.cuda.is_available():
                # or Kineto, set up before CUDA is, sees no kernel of any later cell
                # and hangs the process at its end (an H200 with torch 2.11)
                torch.cuda.init()
            for device in _used_devices():
                torch.cuda.synchronize(device)
            self._before = _counts()
            self._profiler = _make_profiler(self._memory)
            with _without_chatter():
                self._profiler.__enter__()
        except RuntimeError as problem:
            raise CaptureFailed(f"torch's profiler did not start: {problem}") from None
        with record_function(_MARK):
            pass
        self._start_ms = (time.perf_counter() - began) * 1e3
        if not _has_started_before:
            self._first_start_ms = self._start_ms
            _has_started_before = True
        self._start_ns = time.time_ns()

    def stop(self) -> tuple[Columns, Run]:
        """Wait for the GPU, end the recording and read it.

        Raises:
            CaptureFailed: the recording is not this cell's, or there is none.
        """
        code_end_ns = time.time_ns()
        problem: RuntimeError | None = None
        try:
            for device in _used_devices():
                torch.cuda.synchronize(device)
        except RuntimeError as error:
            # a failed assertion in a kernel breaks the context for good
            problem = error
        except KeyboardInterrupt:
            # or no later cell could be profiled
            self._disable()
            raise
        end_ns = time.time_ns()
        began = time.perf_counter()
        if not torch.autograd._profiler_enabled():
            raise CaptureFailed(
                "The cell ran a profiler of its own, which ended this one. Profile "
                "with one of the two."
            )
        try:
            self._disable()
        except RuntimeError as error:
            problem = problem or error
        if problem is not None:
            raise CaptureFailed(f"torch's profiler did not finish: {problem}") from None
        events = self._profiler.kineto_results.events()
        columns = _read(events)
        memory = memory_use(
            self._before, _counts(), _allocations(events) if self._memory else None
        )
        stop_ms = (time.perf_counter() - began) * 1e3
        return columns, Run(
            start_ns=self._start_ns,
            code_end_ns=code_end_ns,
            end_ns=end_ns,
            profiler_ms=self._start_ms + stop_ms,
            first_start_ms=self._first_start_ms,
            gpu_name=_gpu_name(),
            gpus=_limits(),
            cuda_used=torch.cuda.is_initialized(),
            peak_allocated_bytes=highest(each.peak_allocated_bytes for each in memory),
            peak_reserved_bytes=highest(each.peak_reserved_bytes for each in memory),
            memory=memory if self._memory else (),
        )

    def save(self, path: str) -> None:
        """Write what was recorded as a Chrome trace, after `stop`.

        Raises:
            CaptureFailed: torch did not write it.
        """
        with _without_chatter():
            self._profiler.export_chrome_trace(path)
        if not os.path.isfile(path) or not os.path.getsize(path):
            raise CaptureFailed(f"torch could not write the trace to {path}.")

    def _disable(self) -> None:
        with _without_chatter():
            self._profiler.__exit__(None, None, None)


def wait_for_gpu() -> None:
    """Wait until all work that this process has put on its GPUs is done.

    Raises:
        CaptureFailed: a GPU is in a state in which it can't be waited for.
    """
    try:
        for device in _used_devices():
            torch.cuda.synchronize(device)
    except RuntimeError as problem:
        raise CaptureFailed(f"The GPU can't be waited for: {problem}") from None


def _make_profiler(memory: bool) -> Any:
    # torch.profiler.profile is a coat over this one that imports 820 modules first
    options: dict[str, Any] = {}
    config = torch._C._profiler._ExperimentalConfig
    if "expose_kineto_event_metadata" in (config.__init__.__doc__ or ""):
        # the sizes of copies are nowhere else
        options["experimental_config"] = config(expose_kineto_event_metadata=True)
    return profile(
        use_kineto=True,
        use_device="cuda" if torch.cuda.is_available() else None,
        profile_memory=memory,
        **options,
    )


def _let_cupti_go_after_each_profile() -> None:
    """Keep the kernel's speed: launches stay 25-30 % slower with CUPTI attached.

    Before CUDA 12.6, letting go can crash replays of CUDA graphs.
    """
    version = torch.version.cuda
    if version is None:
        return
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) >= _FIRST_CUDA_WITH_SAFE_TEARDOWN:
        os.environ.setdefault("TEARDOWN_CUPTI", "1")


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


def _used_devices() -> list[int]:
    """Give the GPUs that this process works on; none without CUDA."""
    if not torch.cuda.is_initialized():
        return []
    current = torch.cuda.current_device()
    return [
        device
        for device in range(torch.cuda.device_count())
        if device == current or torch.cuda.memory_reserved(device)
    ]


def _gpu_name() -> str | None:
    if not torch.cuda.is_initialized():
        return None
    return ", ".join(map(torch.cuda.get_device_name, _used_devices()))


def _limits() -> tuple[GpuLimits, ...]:
    """Give what each GPU that this process sees can hold, by CUDA's index."""
    if not torch.cuda.is_initialized():
        return ()
    found = []
    for device in range(torch.cuda.device_count()):
        told = torch.cuda.get_device_properties(device)
        found.append(
            GpuLimits(
                told.name,
                (told.major, told.minor),
                told.multi_processor_count,
                getattr(told, "max_threads_per_multi_processor", None),
                getattr(told, "regs_per_multiprocessor", None),
                getattr(told, "shared_memory_per_multiprocessor", None),
                measured_ceilings(told.name),
            )
        )
    return tuple(found)


def _counts() -> list[Counts]:
    """Give what torch's allocator counts on each GPU; nothing without CUDA."""
    if not torch.cuda.is_initialized():
        return []
    try:
        return [
            torch.cuda.memory_stats(device)
            for device in range(torch.cuda.device_count())
        ]
    except RuntimeError:
        # an allocator that was plugged in counts nothing
        return []


def _allocations(events: Sequence[Any]) -> list[tuple[int, int]]:
    """Give each change of allocated memory in order: the GPU and the bytes."""
    on_gpu = torch.autograd.DeviceType.CUDA
    found = [
        (event.start_ns(), event.device_index(), event.nbytes())
        for event in events
        if event.nbytes() and event.device_type() == on_gpu and _name(event) == _MEMORY
    ]
    found.sort(key=lambda each: each[0])
    return [(device, size_bytes) for _, device, size_bytes in found]


def _read(events: Sequence[Any]) -> Columns:
    count = len(events)
    kinds = _kinds(events)
    gpu_kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    metadata = [
        event.metadata_json()
        if kind in gpu_kinds and hasattr(event, "metadata_json")
        else ""
        for event, kind in zip(events, kinds, strict=True)
    ]

    def column(values: Iterator[int]) -> Int64s:
        return np.fromiter(values, np.int64, count)

    columns = make_columns(
        names=interned(map(_name, events)),
        categories=[KINETO_CATEGORIES.get(kind, Category.OTHER) for kind in kinds],
        start_ns=column(event.start_ns() for event in events),
        duration_ns=np.maximum(column(event.duration_ns() for event in events), 0),
        device=column(
            event.device_index() if kind in gpu_kinds else NONE
            for event, kind in zip(events, kinds, strict=True)
        ),
        track=column(event.device_resource_id() for event in events),
        correlation=column(event.correlation_id() for event in events),
        size_bytes=column(map(_size_bytes, metadata)),
        external=column(
            # an operator has no link: it is what others are linked to
            event.linked_correlation_id() or event.correlation_id()
            for event in events
        ),
        shapes=_shapes(metadata),
    )
    if _MARK not in columns.names:
        raise CaptureFailed(
            "The cell started a profiler of its own and left it running, which ended "
            "this one. It has been stopped; profile with one of the two."
        )
    return columns.where(columns.name != columns.names.index(_MARK))


def _name(event: Any) -> str:
    try:
        return str(event.name())
    except UnicodeDecodeError:
        return "(a name that is not UTF-8)"


def _size_bytes(metadata: str) -> int:
    found = _BYTES.search(metadata)
    return int(found[1]) if found else NONE


def _shapes(
    metadata: Sequence[str],
) -> tuple[tuple[KernelShape, ...], Int32s]:
    """Read how each kernel was launched, where the profiler says it."""
    places: dict[tuple[str, ...], int] = {}
    position = np.full(len(metadata), NONE, np.int32)
    for index, text in enumerate(metadata):
        if '"grid"' in text:
            found = [pattern.search(text) for pattern in _SHAPE]
            parts = tuple(each[0] for each in found if each)
            if len(parts) == len(_SHAPE):
                position[index] = places.setdefault(parts, len(places))
    return tuple(map(_shape, places)), position


def _shape(parts: tuple[str, ...]) -> KernelShape:
    numbers = [tuple(map(int, _NUMBER.findall(part))) for part in parts]
    grid, block, registers, shared = numbers
    return KernelShape(
        (grid[0], grid[1], grid[2]),
        (block[0], block[1], block[2]),
        registers[0],
        shared[0],
    )


def _kinds(events: Sequence[Any]) -> list[str]:
    """Give Kineto's activity types, which torch 2.13 tells by name."""
    if events and hasattr(events[0], "activity_type"):
        kinds = [event.activity_type() for event in events]
        if isinstance(kinds[0], str):
            return kinds
    return [_inferred_kind(event) for event in events]


def _inferred_kind(event: Any) -> str:
    if event.device_index() < 0:
        return "overhead"
    name = _name(event)
    if event.device_type() == torch.autograd.DeviceType.CPU:
        # an operator is linked to no operator
        is_api = event.linked_correlation_id() > 0 or _API_NAME.match(name)
        return "cuda_runtime" if is_api else "cpu_op"
    if event.is_user_annotation():
        return "gpu_user_annotation"
    if name.startswith("Memcpy"):
        return "gpu_memcpy"
    return "gpu_memset" if name.startswith("Memset") else "kernel"
