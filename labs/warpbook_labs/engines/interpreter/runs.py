"""Interprets the runs of a program, spread over processes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, NamedTuple

from warpbook_labs.cases.execution import Run
from warpbook_labs.engines.interpreter.front_ends import FrontEnd
from warpbook_labs.engines.interpreter.jobs import Interpreted, RunResult
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.parent import Ended, Outcome
from warpbook_labs.sandbox.progress import Steps
from warpbook_labs.sandbox.work import Limits, Refused

_MOST_PROCESSES = 4

StopStatus = Ended | Literal["unsupported"]


class Stopped(Exception):
    """Not all were run; the message says why."""

    def __init__(self, message: str, status: StopStatus = "stopped") -> None:
        super().__init__(message)
        self.status = status


class Runs(NamedTuple):
    """Every run, in the order in which they were asked."""

    runs: tuple[RunResult, ...]
    #: where it was done, in words
    isolation: str


def interpret(
    front_end: FrontEnd, program: str, runs: tuple[Run, ...], limits: Limits
) -> Runs:
    """Run a program with each memory, on as many cores as may be used.

    Args:
        program: in PTX, or of Triton as a source.

    Raises:
        Stopped: not all of them could be run.
    """
    cores = len(os.sched_getaffinity(0))
    count = max(1, min(len(runs), cores, _MOST_PROCESSES))
    # neighbours are of a size, and so each process has some of all
    jobs = [front_end.job(program, runs[at::count], limits) for at in range(count)]
    steps = Steps(len(runs))
    with ThreadPoolExecutor(count, "warpbook-interpreter") as threads:
        outcomes = list(threads.map(lambda job: warm.run(job, limits, steps), jobs))
    by_place: dict[int, RunResult] = {}
    for at, outcome in enumerate(outcomes):
        places = range(len(runs))[at::count]
        by_place.update(zip(places, _interpreted(outcome).runs, strict=True))
    in_order = tuple(by_place[place] for place in range(len(runs)))
    return Runs(in_order, outcomes[0].isolation)


def _interpreted(outcome: Outcome[Interpreted]) -> Interpreted:
    result = outcome.result
    if isinstance(result, Refused):
        is_unsupported = result.status == "unsupported"
        raise Stopped(result.message, "unsupported" if is_unsupported else "stopped")
    if result is None:
        raise Stopped(outcome.message, outcome.ended)
    return result
