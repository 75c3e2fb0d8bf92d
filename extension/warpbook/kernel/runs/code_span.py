"""When the code of a shell's cells begins and ends, without IPython's own part.

IPython reads and compiles a cell before its code runs, and its hooks are called after
it: 0.2 to 0.6 ms, which is more than many cells take on a GPU.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Moment:
    """A moment on both clocks."""

    #: of `time.perf_counter_ns`
    counter_ns: int
    #: Unix time
    unix_ns: int


class CodeSpan:
    """Notes the begin and the end of code that an IPython shell runs."""

    def __init__(self, shell: Any) -> None:
        """Take the shell; nothing is hooked yet."""
        self._shell = shell
        self._run_code = shell.run_code
        self._wrapped: Any = None
        self._waiting: list[Callable[[], None]] = []
        #: when a statement, of a cell or of one within it, ended last
        self.end: Moment | None = None

    def install(self) -> None:
        run_code = self._run_code = self._shell.run_code

        @functools.wraps(run_code)
        async def wrapped(*args: Any, **options: Any) -> Any:
            self._begin()
            try:
                return await run_code(*args, **options)
            finally:
                self.end = Moment(time.perf_counter_ns(), time.time_ns())

        self._shell.run_code = self._wrapped = wrapped

    def remove(self) -> None:
        self._waiting.clear()
        # somebody else may have put their own around it
        if self._shell.run_code is self._wrapped:
            self._shell.run_code = self._run_code

    def when_code_begins(self, call: Callable[[], None]) -> None:
        """Have this called once, just before the next statement runs."""
        self._waiting.append(call)

    def forget(self, call: Callable[[], None]) -> None:
        """Call it no more: the code did not begin."""
        if call in self._waiting:
            self._waiting.remove(call)

    def _begin(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()
