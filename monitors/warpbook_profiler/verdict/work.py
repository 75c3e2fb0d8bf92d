"""What a run did: operators and kernels by name, sizes and dtypes, and how often."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

import numpy as np

from warpbook_monitors.plain_text import shortened
from warpbook_profiler.events.columns import (
    NONE,
    Bools,
    Columns,
    Int64s,
    groups,
)
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.steps import find_steps
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.work import Work, WorkRow

#: of each kind with their sizes, and as many names of all others
_MOST_ROWS = 200
_LONGEST_NAME = 120
#: Inductor numbers its kernels by their order in a program
_NUMBER = re.compile(r"(?<=^triton_)(.+)_\d+$")
_OPTIMIZER = "Optimizer."

#: (name, sizes, dtypes)
_Key = tuple[str, str, str]


def work_of(trace: Trace) -> Work:
    """Count what was done in the steps of a trace, or in all of it."""
    steps = find_steps(trace)
    run, calls, on_gpu = trace.run, trace.calls, trace.on_gpu
    optimizer = _optimizer(trace.operators)

    def within(at_ns: Int64s) -> Bools:
        # what a step launched may run after it; nothing that begins before counts
        inside = (at_ns >= steps.start_ns) & (at_ns <= steps.end_ns)
        chosen: Bools = inside & ~optimizer.holds(at_ns)
        return chosen

    operators = trace.operators
    operators = operators.where(within(operators.start_ns) & ~operators.annotates)
    launched_ns = on_gpu.start_ns.copy()
    known = calls.launch != NONE
    launched_ns[known] = calls.api.start_ns[calls.launch[known]]
    gpu_work = on_gpu.where(within(launched_ns))
    began_ns = calls.api.start_ns[calls.launches]
    device = run.gpu_name if len(on_gpu) or len(began_ns) else None
    return Work(
        device or run.other_device or "CPU",
        dict(run.versions),
        steps.count,
        steps.whole_ns,
        steps.busy_ns,
        int(((began_ns >= steps.start_ns) & (began_ns <= steps.end_ns)).sum()),
        (*_operators(operators), *_gpu_work(gpu_work)),
    )


def _optimizer(operators: Columns) -> Coverage:
    is_its = np.array(
        [name.startswith(_OPTIMIZER) for name in operators.names] or [False], np.bool_
    )
    marks = operators.where(is_its[operators.name] & operators.annotates)
    return Coverage(marks.start_ns, marks.end_ns)


def _operators(operators: Columns) -> list[WorkRow]:
    counts: Counter[_Key] = Counter()
    first, group = groups(operators.name, operators.operand)
    calls = np.bincount(group, minlength=len(first))
    for row, count in zip(first, calls, strict=True):
        at = operators.operand[row]
        known = operators.operands[at] if at != NONE else None
        dims = known.dims if known else ()
        sizes = " ".join("x".join(map(str, shape)) for shape in dims if shape)
        dtypes = " ".join(filter(None, known.dtypes)) if known else ""
        counts[operators.names[operators.name[row]], sizes, dtypes] += int(count)
    return _rows("operator", counts)


def _gpu_work(work: Columns) -> list[WorkRow]:
    counts: Counter[_Key] = Counter()
    first, group = groups(work.name, work.shape)
    calls = np.bincount(group, minlength=len(first))
    for row, count in zip(first, calls, strict=True):
        at = work.shape[row]
        blocks = "x".join(map(str, work.shapes[at].grid)) if at != NONE else ""
        name = _NUMBER.sub(r"\1", work.names[work.name[row]])
        counts[name, blocks, ""] += int(count)
    return _rows("GPU work", counts)


def _rows(
    kind: Literal["operator", "GPU work"], counts: Counter[_Key]
) -> list[WorkRow]:
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    others: Counter[str] = Counter()
    for (name, _, _), calls in ordered[_MOST_ROWS:]:
        others[name] += calls
    kept = ordered[:_MOST_ROWS]
    kept += [((name, "", ""), calls) for name, calls in others.most_common(_MOST_ROWS)]
    return [
        WorkRow(
            kind,
            shortened(name, _LONGEST_NAME),
            shortened(sizes, _LONGEST_NAME),
            shortened(dtypes, _LONGEST_NAME),
            calls,
        )
        for (name, sizes, dtypes), calls in kept
    ]
