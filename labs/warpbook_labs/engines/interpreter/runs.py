"""Interprets the runs of a program, in processes that are started ahead of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

from warpbook_labs.cases import execution
from warpbook_labs.engines.interpreter.front_ends import FrontEnd
from warpbook_labs.engines.interpreter.jobs import (
    Interpreted,
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
def started(front_end: FrontEnd, runs: int, limits: Limits) -> Iterator[RunAll]:
    """Start as many processes as so many runs are worth here.

    What is given takes the program, in PTX or of Triton as a source, and the runs. It
    raises `Stopped`.
    """
    count = _worth(runs)
    with contextlib.ExitStack() as stack:
        # the last to end: its threads wait for the processes
        threads = stack.enter_context(ThreadPoolExecutor(count, "warpbook-interpreter"))
        work = [
            stack.enter_context(parent.started(front_end.kind, limits))
            for _ in range(count)
        ]

        def interpret(program: str, runs: tuple[execution.Run, ...]) -> Runs:
            # neighbours are of a size, and so each has some of all
            shares = [
                front_end.job(program, runs[at::count], limits) for at in range(count)
            ]
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
