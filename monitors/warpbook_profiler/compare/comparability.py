"""Whether two traces are of the same work, so that their times may be compared.

Counts are of one step where both traces have steps, else of the whole trace. What is
not known in one of them counts for nothing, and is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from warpbook_monitors.plain_text import shortened
from warpbook_profiler.events.columns import NONE, Category, Columns, groups
from warpbook_profiler.facts.steps import Steps
from warpbook_profiler.facts.trace import Trace

#: below it two traces are not compared
LEAST_SCORE = 0.75
#: what each part counts, of those that are known
_WEIGHTS = {
    "GPU": 3.0,
    "versions": 1.0,
    "steps": 1.0,
    "operators": 4.0,
    "kernels": 2.0,
    "launches": 1.0,
}
_MOST_ROWS = 20
_LONGEST_NAME = 120
#: Inductor numbers its kernels by their order in a program
_NUMBER = re.compile(r"(?<=^triton_)(.+)_\d+$")
_OWN_STEP = re.compile(r"ProfilerStep#\d+$")

#: how often something was done, by what it is and its shapes
_Counts = Mapping[tuple[str, str], float]


class Part(Struct, frozen=True):
    """One thing that is the same in both traces, or not."""

    name: str
    #: 1 is the same, 0 is nothing in common; None is not known
    score: float | None
    before: str
    after: str


class Difference(Struct, frozen=True):
    """What was done so many times in the one trace, and so many in the other."""

    #: "operator" or "kernel"
    kind: str
    name: str
    #: sizes of an operator's tensors, or a kernel's blocks; "" where not known
    shapes: str
    #: of one step where both traces have steps
    before_calls: float
    after_calls: float


class Comparability(Struct, frozen=True):
    """How far two traces are of the same work."""

    #: from 0 to 1; 0 on different GPUs, whatever else is the same
    score: float
    parts: tuple[Part, ...]
    #: what differs, the largest count first
    differing: tuple[Difference, ...]


class Work(Struct, frozen=True):
    """What a trace says was done."""

    gpu: str | None
    versions: Mapping[str, str]
    steps: int
    launches: float
    operators: _Counts
    kernels: _Counts


def work_of(trace: Trace, steps: Steps, per_step: bool) -> Work:
    """Count what was done in the steps of a trace, or in all of it.

    Args:
        per_step: divide by the number of steps.
    """
    by = max(steps.count, 1) if per_step else 1
    events, run, calls = trace.events, trace.run, trace.calls
    # what a step launched may run after it; nothing that begins before counts
    inside = events.where(
        (events.start_ns >= steps.start_ns) & (events.start_ns <= steps.end_ns)
    )
    operators = inside.only(Category.OPERATOR)
    is_own = np.array(
        [bool(_OWN_STEP.match(name)) for name in events.names] or [False], np.bool_
    )
    began = calls.api.start_ns[calls.launches]
    launches = (began >= steps.start_ns) & (began <= steps.end_ns)
    return Work(
        run.gpu_name,
        dict(run.versions),
        steps.count,
        float(launches.sum()) / by,
        _operators(operators.where(~is_own[operators.name]), by),
        _kernels(inside.only(Category.KERNEL), by),
    )


def _operators(operators: Columns, by: int) -> _Counts:
    counts: defaultdict[tuple[str, str], float] = defaultdict(float)
    first, group = groups(operators.name, operators.operand)
    calls = np.bincount(group, minlength=len(first))
    for row, count in zip(first, calls, strict=True):
        at = operators.operand[row]
        # a dtype that changed is no other work: it may be what made it slower
        dims = operators.operands[at].dims if at != NONE else ()
        shapes = " ".join("x".join(map(str, sizes)) for sizes in dims if sizes)
        counts[operators.names[operators.name[row]], shapes] += float(count) / by
    return counts


def _kernels(kernels: Columns, by: int) -> _Counts:
    counts: defaultdict[tuple[str, str], float] = defaultdict(float)
    first, group = groups(kernels.name, kernels.shape)
    calls = np.bincount(group, minlength=len(first))
    for row, count in zip(first, calls, strict=True):
        at = kernels.shape[row]
        blocks = "x".join(map(str, kernels.shapes[at].grid)) if at != NONE else ""
        name = _NUMBER.sub(r"\1", kernels.names[kernels.name[row]])
        counts[name, blocks] += float(count) / by
    return counts


def comparability(before: Work, after: Work) -> Comparability:
    """Say how far two traces are of the same work."""
    parts = tuple(_parts(before, after))
    known = [
        (_WEIGHTS[part.name], part.score) for part in parts if part.score is not None
    ]
    weight = sum(one for one, _ in known)
    score = sum(one * same for one, same in known) / weight if weight else 0.0
    gpu = next(part.score for part in parts if part.name == "GPU")
    differing = [
        *_differences("operator", before.operators, after.operators),
        *_differences("kernel", before.kernels, after.kernels),
    ]
    differing.sort(key=lambda row: -abs(row.after_calls - row.before_calls))
    return Comparability(
        0.0 if gpu == 0.0 else score, parts, tuple(differing[:_MOST_ROWS])
    )


def _parts(before: Work, after: Work) -> Iterator[Part]:
    known = before.gpu is not None and after.gpu is not None
    unnamed = "unnamed GPU" in (before.gpu, after.gpu)
    yield Part(
        "GPU",
        None if unnamed else float(before.gpu == after.gpu),
        before.gpu or "none",
        after.gpu or "none",
    )
    both = before.versions.keys() & after.versions.keys()
    yield Part(
        "versions",
        float(all(before.versions[at] == after.versions[at] for at in both))
        if both
        else None,
        _versions(before.versions),
        _versions(after.versions),
    )
    yield Part(
        "steps",
        # of traces without steps nothing is known
        _alike(before.steps, after.steps) if before.steps or after.steps else None,
        f"{before.steps:,}",
        f"{after.steps:,}",
    )
    yield _counted("operators", before.operators, after.operators)
    if known or before.kernels or after.kernels:
        yield _counted("kernels", before.kernels, after.kernels)
        yield Part(
            "launches",
            _alike(before.launches, after.launches),
            f"{before.launches:,.6g}",
            f"{after.launches:,.6g}",
        )


def _versions(versions: Mapping[str, str]) -> str:
    text = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    return text or "not known"


def _alike(before: float, after: float) -> float:
    most = max(before, after)
    return min(before, after) / most if most else 1.0


def _counted(name: str, before: _Counts, after: _Counts) -> Part:
    keys = before.keys() | after.keys()
    most = sum(max(before.get(key, 0.0), after.get(key, 0.0)) for key in keys)
    same = sum(min(before.get(key, 0.0), after.get(key, 0.0)) for key in keys)
    return Part(
        name,
        same / most if most else None,
        f"{sum(before.values()):,.6g}",
        f"{sum(after.values()):,.6g}",
    )


def _differences(kind: str, before: _Counts, after: _Counts) -> Iterator[Difference]:
    for name, shapes in sorted(before.keys() | after.keys()):
        was, now = before.get((name, shapes), 0.0), after.get((name, shapes), 0.0)
        if was != now:
            yield Difference(
                kind, shortened(name, _LONGEST_NAME), shapes[:_LONGEST_NAME], was, now
            )
