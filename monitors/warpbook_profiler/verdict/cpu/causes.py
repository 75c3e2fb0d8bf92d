"""What explains the time of a run without GPU work, with figures and a change."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import named
from warpbook_profiler.model.cause import Cause
from warpbook_profiler.verdict.cpu.operator_causes import (
    beside_workers,
    operator_causes,
)
from warpbook_profiler.verdict.cpu.split import Split
from warpbook_profiler.verdict.leading_cause import SHARE

_SINGLE = re.compile(r".*_SingleProcess")
_FIRST_SHARE = 0.5
#: reads one element, or makes a view of it
_ELEMENT = re.compile(r"aten::(item|_local_scalar_dense|select|unbind)$")
_ELEMENT_SHARE = 0.3
#: torch.tensor() and torch.as_tensor() make one of what is not
_CONVERTS = re.compile(r"aten::lift_fresh$")
_CONVERSIONS_SHARE = 0.05


def causes(run: Run, split: Split) -> Iterator[Cause]:
    """Give every cause, in no order."""
    yield from _loading(split)
    yield from _small_calls(split)
    yield from _python(run, split)
    yield from operator_causes(split)
    yield from _communication(split)


def _loading(split: Split) -> Iterator[Cause]:
    time, calls = split.time, split.loader
    if not time.loading_ns:
        return
    times = f"{len(calls):,} time{'s' if len(calls) != 1 else ''}"
    first_ns = int(calls.duration_ns[0])
    if named(calls, _SINGLE).any():
        cores = 0 if time.use is None else time.use.cores
        evidence = (
            f"The program waited {SHARE} of the time for its DataLoader, which loads "
            f"in the same process (num_workers=0) and was asked {times}."
        )
        if cores == 1:
            yield Cause(
                "input-bound",
                time.loading_ns,
                evidence,
                "cheaper-items",
                "Make __getitem__ cheaper: with one core, workers gain nothing.",
                0,
            )
            return
        yield Cause(
            "input-bound",
            time.loading_ns,
            evidence,
            "workers",
            "Load in other processes: DataLoader(..., num_workers=N). Starting them "
            "also takes time: keep them with persistent_workers=True.",
            round(time.loading_ns / cores) if cores else 0,
            f"{cores} cores share the loading and everything else." if cores else "",
            workers=max(cores - 1, 1),
        )
        return
    if first_ns > _FIRST_SHARE * time.loading_ns:
        yield Cause(
            "input-bound",
            time.loading_ns,
            f"The program waited {SHARE} of the time for the workers of its "
            f"DataLoader, {units.duration_ns(first_ns)} of it for the first batch: "
            "the workers have to start.",
            "keep-workers",
            "Create the DataLoader once, with persistent_workers=True, and iterate "
            "over it several times.",
            time.loading_ns - first_ns,
        )
        return
    evidence = (
        f"The program waited {SHARE} of the time for the workers of its DataLoader, "
        f"which was asked {times}."
    )
    if split.workers_lack_cores and time.use is not None:
        yield Cause(
            "input-bound",
            time.loading_ns,
            f"{evidence} {beside_workers(time, time.use)}",
            "fewer-workers",
            "Use fewer workers or torch threads (torch.set_num_threads), together no "
            "more than there are cores, or make __getitem__ cheaper.",
            0,
        )
        return
    yield Cause(
        "input-bound",
        time.loading_ns,
        evidence,
        "more-workers",
        "Use more workers, or make __getitem__ cheaper.",
        0,
    )


def _communication(split: Split) -> Iterator[Cause]:
    time = split.time
    if time.communication_ns:
        yield Cause(
            "communication-bound",
            time.communication_ns,
            f"{SHARE} of the time was "
            "outside operators while collectives ran: the program waited for other "
            "ranks or for the network.",
            "communicate-less",
            "Make the rank that comes last faster: warpbook analyze with the traces of "
            "all ranks names it. Otherwise send less, or overlap with computing.",
            0,
        )


def _small_calls(split: Split) -> Iterator[Cause]:
    time = split.time
    if not time.small_calls:
        return
    small = split.calls.where(split.small)
    elements = int(named(small, _ELEMENT).sum())
    per_call = units.duration_ns(time.small_calls_ns / time.small_calls)
    most = _most_called(small)
    if elements > _ELEMENT_SHARE * time.small_calls:
        yield Cause(
            "python-bound",
            time.small_calls_ns,
            f"A Python loop iterates over single elements: {time.small_calls:,} small "
            f"calls, mostly {most}, took {SHARE} of the time, {per_call} each.",
            "vectorize",
            "Replace the loop by one operation on the whole tensor; if Python needs "
            "the numbers, read all of them at once with x.tolist().",
            0,
            operator=most,
        )
        return
    yield Cause(
        "overhead-bound",
        time.small_calls_ns,
        f"{time.small_calls:,} small call{'s' if time.small_calls != 1 else ''}, "
        f"mostly {most}, took {SHARE} of the time, "
        f"{per_call} each with Python between them: that is the overhead of calling, "
        "not arithmetic.",
        "fewer-calls",
        "Make fewer calls on more data (larger or batched tensors, foreach and fused "
        "forms), or let torch.compile merge the calls.",
        0,
        operator=most,
    )


def _python(run: Run, split: Split) -> Iterator[Cause]:
    time = split.time
    line = _busiest_line(run)
    maybe = " or a wait, which the trace does not distinguish"
    maybe = maybe if time.waiting_ns is None else ""
    conversions = int(named(split.operators, _CONVERTS).sum())
    if conversions and conversions > _CONVERSIONS_SHARE * time.calls:
        yield Cause(
            "python-bound",
            time.python_ns,
            f"{SHARE} of the time was outside operators, around {conversions:,} "
            f"conversion{'s' if conversions != 1 else ''} of Python or NumPy values "
            "to tensors.",
            "convert-once",
            "Convert once: keep the data in one NumPy array and share its memory "
            "(torch.from_numpy), not lists of numbers.",
            0,
            line=line,
        )
    else:
        yield Cause(
            "python-bound",
            time.python_ns,
            f"{SHARE} of the time was Python's own{maybe}: "
            + (
                f"outside the {time.calls:,} operators that were called."
                if time.calls
                else "no torch operator was called."
            ),
            "less-python",
            "Move the work into operations on tensors or arrays; Python's profiler "
            "(%prun in a notebook) shows which function takes the time.",
            0,
            line=line,
        )
    if time.waiting_ns:
        yield Cause(
            "wait-bound",
            time.waiting_ns,
            "The thread slept or waited "
            f"{SHARE} of the time outside "
            "operators: for files, the network, another process, or a sleep.",
            "wait-less",
            "Do it in the background (a thread, a prefetch), or remove it.",
            0,
            line=line,
        )


def _most_called(calls: Columns) -> str:
    counts = np.bincount(calls.name, minlength=len(calls.names))
    return calls.names[int(counts.argmax())]


def _busiest_line(run: Run) -> int | None:
    """Name the line of the cell that took most, where lines were noted."""
    marks = run.marks
    if marks is None or not len(marks.line):
        return None
    took_ns = np.append(marks.start_ns[1:], run.code_end_ns) - marks.start_ns
    return int(np.bincount(marks.line, np.maximum(took_ns, 0)).argmax())
