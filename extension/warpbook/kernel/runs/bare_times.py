"""How long cells take that nobody profiles, so that a profile has a bare time.

Every execution is timed by two looks at the clock. Whether the GPU's work was over at
the end is asked, never waited for: a stream that still works when its cell has ended
gives no time, as the cell ended with its launches. A time counts if the current
streams were idle before and after it.
"""

from __future__ import annotations

import ast
import hashlib
import re
import statistics
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpbook.kernel.runs.cell import cell_status, did_nothing
from warpbook.kernel.runs.code_span import CodeSpan
from warpbook_profiler.model.bare_run import BareSource, BareTimes

#: the newest times of so many sources are kept, and so many times of each
_MOST_SOURCES = 500
_MOST_TIMES = 20
#: a line that only says how a cell is run, or did when it was no comment
_MAGIC = re.compile(r"#?\s*%{1,2}gpuprof\b.*")
#: libraries whose work on a GPU nobody here can ask for
_UNKNOWN = ("jax", "jaxlib", "tensorflow", "numba.cuda", "pycuda", "paddle", "mxnet")
#: of a longer source only the text counts: it is parsed before each execution
_MOST_CHARACTERS = 20_000
_MOST_NAMES = 50
_MOST_TEXT = 200
#: whose values are asked; others may do anything when they are
_ARRAYS = ("torch", "numpy", "cupy", "jax", "jaxlib")


def without_magic(source: str) -> str:
    """Give what a cell does: its lines without `%%gpuprof` and what stands around."""
    lines = [line.rstrip() for line in source.strip().splitlines()]
    if lines and _MAGIC.fullmatch(lines[0].strip()):
        del lines[0]
    return "\n".join(lines).strip()


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class RunTimes:
    """The executions of one source."""

    times_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))
    #: the very first, in which things are loaded and compiled; None once it is over
    first_ns: int | None = None
    #: it ran before, profiled or not
    has_run: bool = False
    #: executions that ended before their GPU had
    unfinished: int = 0

    def add(self, took_ns: int) -> None:
        if self.has_run:
            self.first_ns = None
            self.times_ns.append(took_ns)
        else:
            self.first_ns = took_ns

    @property
    def bare(self) -> BareTimes | None:
        """Add the times up; None without one."""
        if self.first_ns is not None:
            return bare_times((self.first_ns,), "first execution")
        return bare_times(tuple(self.times_ns), "executions")


def bare_times(times_ns: Sequence[int], source: BareSource) -> BareTimes | None:
    """Add times up; None without one."""
    if not times_ns:
        return None
    return BareTimes(
        runs=len(times_ns),
        median_ns=round(statistics.median(times_ns)),
        least_ns=min(times_ns),
        most_ns=max(times_ns),
        source=source,
    )


class CellTimes:
    """Times the cells of one IPython shell."""

    def __init__(self, shell: Any, span: CodeSpan) -> None:
        """Take the shell, and what notes when its code runs; nothing is hooked yet."""
        self._shell = shell
        self._span = span
        self._by_source: OrderedDict[str, RunTimes] = OrderedDict()
        self._source: str | None = None
        self._key = ""
        self._began_ns: int | None = None
        #: the profiler is at work, or the GPU was at the begin
        self._is_left_out = False

    def install(self) -> None:
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def remove(self) -> None:
        self._shell.events.unregister("post_run_cell", self.after_cell)
        self._shell.events.unregister("pre_run_cell", self.before_cell)

    def of(self, source: str) -> RunTimes:
        """Give the times of a source with the inputs that it would have now."""
        return self._by_source.get(self._key_of(source), RunTimes())

    def profiled(self) -> None:
        """Leave out the cell that runs now: the profiler is at work in it."""
        self._is_left_out = True

    def before_cell(self, info: Any) -> None:
        """Note that a cell begins; one within another is a part of that."""
        if self._source is None:
            self._source = info.raw_cell
            self._key = self._key_of(info.raw_cell)
            self._began_ns = None
            self._span.forget(self._begin)
            self._span.when_code_begins(self._begin)

    def _begin(self) -> None:
        # a profiler would record the question
        if not self._is_left_out:
            self._is_left_out = not gpu_is_idle()
        self._began_ns = time.perf_counter_ns()

    def after_cell(self, result: Any) -> None:
        """Keep the time of a cell that ended well."""
        source, began_ns, end = self._source, self._began_ns, self._span.end
        if result is not None and result.info.raw_cell != source:
            return
        is_left_out, self._is_left_out = self._is_left_out, False
        self._source = self._began_ns = None
        if source is None or began_ns is None or end is None or result is None:
            return
        if did_nothing(result) or cell_status(result) != "ok":
            return
        timed = self._of_key(self._key)
        if not is_left_out:
            if gpu_is_idle():
                timed.add(end.counter_ns - began_ns)
            else:
                timed.unfinished += 1
        timed.has_run = True

    def _key_of(self, source: str) -> str:
        plain = without_magic(source)
        inputs = inputs_of(plain, self._shell.user_ns)
        return hashed(f"{plain}\0{inputs}")

    def _of_key(self, key: str) -> RunTimes:
        timed = self._by_source.setdefault(key, RunTimes())
        self._by_source.move_to_end(key)
        while len(self._by_source) > _MOST_SOURCES:
            self._by_source.popitem(last=False)
        return timed


def gpu_is_idle() -> bool:
    """Tell whether all work of the current streams is done, without waiting for it.

    A library whose streams can't be asked makes it False: nobody knows.
    """
    if any(name in sys.modules for name in _UNKNOWN):
        return False
    cuda = sys.modules.get("torch.cuda")
    is_initialized = getattr(cuda, "is_initialized", None)
    try:
        if cuda is not None and is_initialized is not None and is_initialized():
            devices = range(cuda.device_count())
            if not all(_is_idle(cuda, device) for device in devices):
                return False
        cupy = sys.modules.get("cupy")
        stream = getattr(getattr(cupy, "cuda", None), "get_current_stream", None)
        return stream is None or bool(stream().done)
    except Exception:  # noqa: BLE001  # a GPU after an error answers with any
        return False


def _is_idle(cuda: Any, device: int) -> bool:
    # a GPU that holds nothing of this process must not be set up by the question
    if device != cuda.current_device() and not cuda.memory_reserved(device):
        return True
    streams = (cuda.current_stream(device), cuda.default_stream(device))
    return all(bool(stream.query()) for stream in streams)


def inputs_of(source: str, names: Mapping[str, Any]) -> str:
    """Describe the values that a source reads and does not set itself.

    Nothing of them is computed or called: a tensor or array is its type, shape, dtype
    and device, a module or optimizer itself. All else is left out, as counters and
    results change with each execution.
    """
    if len(source) > _MOST_CHARACTERS:
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # with IPython's own lines, or no Python at all
        return ""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in uses if isinstance(node.ctx, ast.Load)}
    read -= {node.id for node in uses if not isinstance(node.ctx, ast.Load)}
    known = sorted(name for name in read if name in names)[:_MOST_NAMES]
    described = ((name, _described(names[name])) for name in known)
    return ";".join(f"{name}={text}" for name, text in described if text)


def _described(value: Any) -> str:
    kind = type(value)
    if hasattr(kind, "state_dict"):
        return str(id(value))
    if kind.__module__.partition(".")[0] not in _ARRAYS:
        return ""
    try:
        shape, dtype = tuple(value.shape), value.dtype
        device = getattr(value, "device", "")
    except Exception:  # noqa: BLE001  # not an array, or one that is deleted
        return ""
    return f"{kind.__name__} {shape} {dtype} {device}"[:_MOST_TEXT]
