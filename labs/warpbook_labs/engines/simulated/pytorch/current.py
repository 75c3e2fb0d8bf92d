"""What is asked, with the learner's lines, and the machine that records it now."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from warpbook_labs.engines.simulated.program import DEFAULT_STREAM, Instruction
from warpbook_labs.errors import Missing


def refuse(what: str, instead: str = "") -> NoReturn:
    """Say that something is not there, and perhaps what to do instead.

    Raises:
        Missing: always.
    """
    raise Missing(f"The simulated GPU has no {what}{where()}. {instead}".rstrip())


def where() -> str:
    """Name the learner's line, if there is one."""
    machine = machine_or_none()
    line = machine.record.line() if machine is not None else 0
    return f" (line {line})" if line else ""


_machines: list[Any] = []


def machine() -> Any:
    """Give it.

    Raises:
        RuntimeError: no case runs.
    """
    if not _machines:
        raise RuntimeError("No case runs on the simulated GPU.")
    return _machines[-1]


def machine_or_none() -> Any:
    """Give it; None where nothing is recorded."""
    return _machines[-1] if _machines else None


@contextlib.contextmanager
def recording(machine: Any) -> Iterator[None]:
    """Have a machine record what is asked meanwhile."""
    _machines.append(machine)
    try:
        with machine:
            yield
    finally:
        _machines.pop()


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Let Python look at numbers meanwhile, and have nothing written down."""
    held = _machines[:]
    _machines.clear()
    try:
        yield
    finally:
        _machines[:] = held


MOST_INSTRUCTIONS = 100_000


class TooMuch(RuntimeError):
    """More was asked than is recorded."""


class Record:
    """All that one case asks, and the stream to which work goes now."""

    def __init__(
        self, source_name: str, most_instructions: int, is_kept: bool = True
    ) -> None:
        """Begin with nothing asked.

        Args:
            source_name: lines are those of code from a file of this name.
            is_kept: it is written down; else it is only done, however much it is.
        """
        self.is_kept = is_kept
        self.instructions: list[Instruction] = []
        self.stream = DEFAULT_STREAM
        self._source_name = source_name
        self._most = most_instructions
        self._counts: defaultdict[str, itertools.count[int]]
        self._counts = defaultdict(itertools.count)

    def number_of(self, kind: str) -> int:
        """Give the next number of a kind of thing, from 0."""
        return next(self._counts[kind])

    def line(self) -> int:
        """Give the learner's line that is executed now; 0 if none is."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._source_name:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def add(self, instruction: Instruction) -> None:
        """Write it down.

        Raises:
            TooMuch: there are as many as are kept.
        """
        if not self.is_kept:
            return
        if len(self.instructions) >= self._most:
            raise TooMuch(
                f"The simulated GPU records {self._most:,} things that it is asked, "
                f"and line {self.line()} asks for more. Does a loop not end?"
            )
        self.instructions.append(instruction)

    def add_anyhow(self, instruction: Instruction) -> None:
        """Write it down, however much there is: what was allocated may be released."""
        if self.is_kept:
            self.instructions.append(instruction)
