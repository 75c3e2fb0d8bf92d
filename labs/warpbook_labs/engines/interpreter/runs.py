"""Interprets the runs of a program, in processes that are started ahead of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

from warpbook_labs.cases import execution
from warpbook_labs.engines.interpreter.jobs import (
    Interpret,
    Interpreted,
    InterpretTriton,
    Ran,
)
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import Ended
from warpbook_labs.sandbox.work import Refused

_MOST_PROCESSES = 4
#: so many runs are worth a process, which takes longer to start than most of them
_RUNS_EACH = 4
#: where so many cores are, a single one is
_MANY_CORES = 8
#: what takes longer is told with its line, before the system ends the process
_SHARE_OF_TIME = 0.8


StopStatus = Ended | Literal["unsupported"]


class Stopped(Exception):
    """Not all were run; the message says why."""

    def __init__(self, message: str, status: StopStatus = "stopped") -> None:
        """Say why: whether the time was up, or something is not known here."""
        super().__init__(message)
        self.status = status


class Runs(NamedTuple):
    """Every run, in the order in which they were asked."""

    runs: tuple[Ran, ...]
    #: where it was done, in words
    isolation: str


RunAll = Callable[[str, tuple[execution.Run, ...]], Runs]


@contextlib.contextmanager
def started(is_triton: bool, runs: int, limits: Limits) -> Iterator[RunAll]:
    """Start as many processes as so many runs are worth here.

    What is given takes the program, in PTX or of Triton as a source, and the runs. It
    raises `Stopped`.
    """
    kind = InterpretTriton if is_triton else Interpret
    count = _worth(runs)

    def job(
        program: str, runs: tuple[execution.Run, ...]
    ) -> InterpretTriton | Interpret:
        processor_s = _SHARE_OF_TIME * limits.processor_s
        if is_triton:
            return InterpretTriton(program, runs, processor_s)
        wall_s = _SHARE_OF_TIME * limits.wall_s
        return Interpret(program, runs, processor_s=processor_s, wall_s=wall_s)

    with contextlib.ExitStack() as stack:
        # the last to end: its threads wait for the processes
        threads = stack.enter_context(ThreadPoolExecutor(count, "warpbook-interpreter"))
        work = [stack.enter_context(parent.started(kind, limits)) for _ in range(count)]

        def interpret(program: str, runs: tuple[execution.Run, ...]) -> Runs:
            # neighbours are of a size, and so each has some of all
            shares = [job(program, runs[at::count]) for at in range(count)]
            done = [
                threads.submit(do, share)
                for do, share in zip(work, shares, strict=True)
            ]
            outcomes = [each.result() for each in done]
            ran: dict[int, Ran] = {}
            for at, outcome in enumerate(outcomes):
                result = outcome.result
                if isinstance(result, Refused):
                    is_unsupported = result.status == "unsupported"
                    status: StopStatus = "unsupported" if is_unsupported else "stopped"
                    raise Stopped(result.message, status)
                if not isinstance(result, Interpreted):
                    raise Stopped(outcome.message, outcome.ended)
                ran.update(zip(range(len(runs))[at::count], result.runs, strict=True))
            in_order = tuple(ran[at] for at in range(len(runs)))
            return Runs(in_order, outcomes[0].isolation)

        yield interpret


def _worth(runs: int) -> int:
    """Tell how many processes so many runs are worth, of the cores that may be used."""
    cores = len(os.sched_getaffinity(0))
    wanted = runs if cores >= _MANY_CORES else runs // _RUNS_EACH
    return max(1, min(wanted, cores, _MOST_PROCESSES))
