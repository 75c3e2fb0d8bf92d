"""Calls a learner's Python functions, which can only give back data.

No right answer is in this process, nor anything that judges: whatever the functions
return, or write into the answer in some other way, is judged as data by the parent.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType, TracebackType
from typing import Any

import msgspec

from warpbook_labs.jail.jobs import Answered, Asked, Call, Called, Refused

SOURCE_NAME = "answers.py"
#: what a learner may import: no file can be opened later
MODULES = (
    "abc bisect collections dataclasses decimal enum fractions functools heapq "
    "itertools json math numbers operator random re statistics string textwrap typing"
).split()
_TICK_S = 0.05
_MOST_ANSWER_BYTES = 1 << 16
_MOST_PRINTED, _MOST_WORDS = 4_000, 300


class _TooLong(BaseException):
    """A call took longer than it may; no `except Exception` keeps it."""


class _Watch:
    """Ends calls that take too long, as far as Python can be interrupted."""

    until: float | None = None

    def tick(self, number: int, frame: FrameType | None) -> None:
        """Look at the clock."""
        if self.until is not None and time.monotonic() > self.until:
            raise _TooLong

    @contextlib.contextmanager
    def of(self, seconds: float) -> Iterator[None]:
        """Give what is done here so many seconds."""
        self.until = time.monotonic() + seconds
        try:
            yield
        finally:
            self.until = None


class _Printed(io.TextIOBase):
    """What was printed, its first part."""

    def __init__(self) -> None:
        self.held = ""

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        self.held += str(text)[: _MOST_PRINTED - len(self.held)]
        return len(text)


_watch = _Watch()


def prepare() -> None:
    """Load what learners may import, and set the clock, which the jail won't allow."""
    for name in MODULES:
        importlib.import_module(name)
    signal.signal(signal.SIGALRM, _watch.tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)


def do(job: Call) -> Called | Refused:
    """Load a learner's module and call its functions, one after the other."""
    module = ModuleType("answers")
    printed = _Printed()
    encode = msgspec.msgpack.Encoder().encode
    try:
        with contextlib.redirect_stdout(printed), _watch.of(job.call_s):
            code = compile(job.source, SOURCE_NAME, "exec", dont_inherit=True)
            exec(code, module.__dict__)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = _told(problem, job.call_s)
        return Refused(f"Line {line}: {words}" if line else words)
    return Called(
        tuple(_answer(module, each, job.call_s, encode) for each in job.calls)
    )


def _answer(
    module: ModuleType, asked: Asked, call_s: float, encode: Callable[[Any], bytes]
) -> Answered:
    printed = _Printed()
    try:
        with contextlib.redirect_stdout(printed), _watch.of(call_s):
            data = encode(getattr(module, asked.function)(*asked.arguments))
        if len(data) > _MOST_ANSWER_BYTES:
            words = f"It returned more than {_MOST_ANSWER_BYTES >> 10} KiB."
            return Answered(problem=words, printed=printed.held)
        return Answered(data, printed=printed.held)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = _told(problem, call_s)
        return Answered(problem=words, line=line, printed=printed.held)


def _told(problem: BaseException, call_s: float) -> tuple[int | None, str]:
    """Say in words what was raised, and at which line of the learner's."""
    line = _line(problem.__traceback__)
    kind = type(problem).__name__
    if isinstance(problem, _TooLong):
        return line, f"It took longer than {call_s:g} s."
    if isinstance(problem, SyntaxError) and line is None:
        line = problem.lineno if isinstance(problem.lineno, int) else None
        return line, f"{kind}: {problem.msg}"[:_MOST_WORDS]
    if isinstance(problem, TypeError | OverflowError | RecursionError) and line is None:
        return None, f"It can't be called so, or returned no plain data: {problem}"
    try:
        with _watch.of(call_s):
            words = str(problem)
    except BaseException:  # noqa: BLE001 - its __str__ is the learner's, too
        words = ""
    if isinstance(problem, ModuleNotFoundError):
        words += f"; there are {', '.join(MODULES)}."
    elif isinstance(problem, MemoryError):
        words = words or "it wanted more memory than there is."
    words = f"{kind}: {words}" if words else kind
    return line, words[: _MOST_WORDS * 2]


def _line(trace: TracebackType | None) -> int | None:
    """Give the innermost line that is the learner's own."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
