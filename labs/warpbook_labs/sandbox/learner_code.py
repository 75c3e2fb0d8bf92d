"""A learner's Python in the jail: how long it takes, what it prints, how it fails."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import time
from collections.abc import Iterator, Sequence
from types import FrameType

#: what a learner may import: no file can be opened later
MODULES = (
    "abc bisect collections contextlib copy dataclasses datetime decimal enum "
    "fractions functools heapq itertools json math numbers numpy operator random re "
    "statistics string struct sys textwrap time types typing"
).split()
_TICK_S = 0.05
_MOST_PRINTED, _MOST_WORDS = 4_000, 300


class TooLong(BaseException):
    """A call took longer than it may; no `except Exception` keeps it."""


class _Watch:
    """Ends calls that take too long, as far as Python can be interrupted."""

    until: float | None = None

    def tick(self, number: int, frame: FrameType | None) -> None:
        if self.until is not None and time.process_time() > self.until:
            raise TooLong


class Printed(io.TextIOBase):
    """What was printed, its first part."""

    def __init__(self) -> None:
        self.held = ""

    def write(self, text: str) -> int:
        self.held += str(text)[: _MOST_PRINTED - len(self.held)]
        return len(text)


_watch = _Watch()


def load_modules() -> None:
    """Load what learners may import, and set the clock, which the jail won't allow."""
    for name in MODULES:
        importlib.import_module(name)
    # `inspect` asks for it, of a source that is in no folder
    os.getcwd = lambda: "/"
    start_clock()


def start_clock() -> None:
    """Set the clock, which a process that is forked does not have from its parent."""
    signal.signal(signal.SIGALRM, _watch.tick)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)


def stop_clock() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give what is done here so many seconds of CPU time: others use it, too."""
    _watch.until = time.process_time() + seconds
    try:
        yield
    finally:
        _watch.until = None


def words_of(
    problem: BaseException,
    seconds: float,
    source_name: str,
    modules: Sequence[str] = MODULES,
) -> tuple[int | None, str]:
    """Say in words what was raised, and at which line of the learner's."""
    line = line_of(problem, source_name)
    kind = type(problem).__name__
    if isinstance(problem, TooLong):
        return line, f"Timed out after {seconds:g} s."
    if isinstance(problem, SyntaxError) and line is None:
        line = problem.lineno if isinstance(problem.lineno, int) else None
        return line, f"{kind}: {problem.msg}"[:_MOST_WORDS]
    if isinstance(problem, TypeError | OverflowError | RecursionError) and line is None:
        return None, f"It can't be called so, or returned no plain data: {problem}"
    try:
        with within(seconds):
            words = str(problem)
    except BaseException:  # noqa: BLE001 - its __str__ is the learner's, too
        words = ""
    if isinstance(problem, ModuleNotFoundError):
        words += f"; there are {', '.join(modules)}."
    elif isinstance(problem, MemoryError):
        words = words or "memory limit exceeded."
    words = f"{kind}: {words}" if words else kind
    return line, words[: _MOST_WORDS * 2]


def line_of(problem: BaseException, source_name: str) -> int | None:
    """Give the innermost line that is the learner's own."""
    line, trace = None, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source_name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
