"""How far two runs did the same work, so that their times may be compared.

The score is the larger one of operators and GPU work: a CUDA graph launches the same
kernels by no operator, and another GPU has other kernels for the same operators. Each
is the geometric mean of two parts that are the same, one of the calls and one of the
names, since a deeper model calls the same names more often.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.model.work import Work, WorkRow

#: Below it nothing is concluded from two times. An edit of a model's size, dtype or
#: optimizer leaves 0.72 or more of a program of torch, another architecture at most 0.6
#: (docs/how-to/compare-runs.md).
LEAST_SCORE = 0.65
#: what differs by less is not named
_TOLD = 0.99
_MOST_ROWS = 20
#: sizes of tiles and vectors within a kernel's name follow the sizes of its tensors
_NUMBERS = re.compile(r"\d+")

#: calls a step where both have steps, by what was called
_Counts = Mapping[tuple[str, ...], float]


class LikenessPart(Struct, frozen=True):
    """One thing that is the same in both runs, or not."""

    name: str
    #: 1 is the same, 0 is nothing in common; None is not known
    score: float | None
    before: str
    after: str


class Difference(Struct, frozen=True):
    """What was called so many times in the one run, and so many in the other."""

    kind: Literal["operator", "GPU work"]
    name: str
    #: of an operator's tensors, or a kernel's blocks; "" where not known
    sizes: str
    dtypes: str
    #: of one step where both have steps
    before_calls: float
    after_calls: float


class Likeness(Struct, frozen=True):
    """How far two runs did the same work."""

    #: from 0 to 1; 0 on different devices; None where nothing tells
    score: float | None
    #: below it nothing is concluded from the times
    least_score: float
    parts: tuple[LikenessPart, ...]
    #: what differs, the largest count first
    differing: tuple[Difference, ...]

    @property
    def is_enough(self) -> bool:
        """Whether the times may be compared; what is not known forbids nothing."""
        return self.score is None or self.score >= self.least_score


def likeness(before: Work | None, after: Work | None, least_score: float) -> Likeness:
    """Say how far two runs did the same work."""
    if before is None or after is None:
        return Likeness(None, least_score, (), ())
    # of one step each, or of the whole
    by = (before.steps, after.steps) if before.steps and after.steps else (1, 1)
    rows = (before.rows, by[0]), (after.rows, by[1])

    def counted(name: str, kind: str, key: _Key, score: _Score) -> LikenessPart:
        was, now = (_counts(each, steps, kind, key) for each, steps in rows)
        return LikenessPart(name, score(was, now), _calls(was), _calls(now))

    operators = counted("operators", "operator", _name, _alike)
    gpu_work = counted("GPU work", "GPU work", _family, _alike)
    known = [part.score for part in (operators, gpu_work) if part.score is not None]
    parts = (
        _device(before, after),
        operators,
        counted("sizes", "operator", _sizes, _same_details),
        counted("dtypes", "operator", _dtypes, _same_details),
        gpu_work,
        _number("launches", before.launches / by[0], after.launches / by[1]),
        _number("steps", before.steps, after.steps),
        _versions(before, after),
    )
    score = max(known) if known else None
    if score is not None and parts[0].score == 0.0:
        score = 0.0
    return Likeness(score, least_score, parts, tuple(_differing(*rows)))


def words(alike: Likeness) -> str:
    """Say what differs: "device (NVIDIA L4 instead of CPU), dtypes (31 % the same)"."""
    said = []
    for part in alike.parts:
        if part.score is None or part.score >= _TOLD:
            continue
        if part.before == part.after or part.name in ("sizes", "dtypes"):
            said.append(f"{part.name} ({units.share(part.score)} the same)")
        elif part.name in ("operators", "GPU work"):
            share = units.share(part.score)
            calls = f"{part.after} calls instead of {part.before}"
            said.append(f"{part.name} ({share} the same, {calls})")
        else:
            said.append(f"{part.name} ({part.after} instead of {part.before})")
    return ", ".join(said)


_Key = Callable[[WorkRow], tuple[str, ...] | None]
_Score = Callable[[_Counts, _Counts], float | None]


def _name(row: WorkRow) -> tuple[str, ...]:
    return (row.name,)


def _family(row: WorkRow) -> tuple[str, ...]:
    return (_NUMBERS.sub("", row.name),)


def _sizes(row: WorkRow) -> tuple[str, ...] | None:
    return (row.name, row.sizes) if row.sizes else None


def _dtypes(row: WorkRow) -> tuple[str, ...] | None:
    return (row.name, row.dtypes) if row.dtypes else None


def _counts(rows: tuple[WorkRow, ...], steps: int, kind: str, key_of: _Key) -> _Counts:
    counts: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for row in rows:
        key = key_of(row)
        if row.kind == kind and key is not None:
            counts[key] += row.calls / steps
    return counts


def _calls(counts: _Counts) -> str:
    return f"{sum(counts.values()):,.6g}"


def _same_calls(before: _Counts, after: _Counts) -> float | None:
    keys = before.keys() | after.keys()
    most = sum(max(before.get(key, 0.0), after.get(key, 0.0)) for key in keys)
    same = sum(min(before.get(key, 0.0), after.get(key, 0.0)) for key in keys)
    return same / most if most else None


def _alike(before: _Counts, after: _Counts) -> float | None:
    calls = _same_calls(before, after)
    if calls is None:
        return None
    both, either = before.keys() & after.keys(), before.keys() | after.keys()
    return math.sqrt(calls * len(both) / len(either))


def _same_details(before: _Counts, after: _Counts) -> float | None:
    """Of the calls by name that both made, give the part with the same details."""
    same = sum(min(calls, after.get(key, 0.0)) for key, calls in before.items())
    was, now = _by_name(before), _by_name(after)
    both = sum(min(calls, now.get(name, 0.0)) for name, calls in was.items())
    return same / both if both else None


def _by_name(counts: _Counts) -> Mapping[str, float]:
    calls: defaultdict[str, float] = defaultdict(float)
    for (name, _), count in counts.items():
        calls[name] += count
    return calls


def _device(before: Work, after: Work) -> LikenessPart:
    names = before.device, after.device
    known = "unnamed GPU" not in names
    return LikenessPart(
        "device", float(len(set(names)) == 1) if known else None, *names
    )


def _number(name: str, before: float, after: float) -> LikenessPart:
    most = max(before, after)
    # of runs without any nothing is known
    score = min(before, after) / most if most else None
    return LikenessPart(name, score, f"{before:,.6g}", f"{after:,.6g}")


def _version(name: str, number: str) -> str:
    """Write a version; CUDA gives 13.1 as 13010."""
    if name == "CUDA" and number.isdecimal() and 4 <= len(number) <= 6:
        number = "{}.{}".format(*divmod(int(number) // 10, 100))
    return f"{name} {number}"


def _versions(before: Work, after: Work) -> LikenessPart:
    both = before.versions.keys() & after.versions.keys()
    same = all(before.versions[at] == after.versions[at] for at in both)
    texts = (
        ", ".join(_version(*named) for named in sorted(work.versions.items()))
        or "not known"
        for work in (before, after)
    )
    return LikenessPart("versions", float(same) if both else None, *texts)


#: a row's kind, name, sizes and dtypes
_Which = tuple[Literal["operator", "GPU work"], str, str, str]


def _counts_of(rows: Iterable[WorkRow], steps: int) -> Mapping[_Which, float]:
    # long names are shortened in the middle, and then are the same
    calls: defaultdict[_Which, float] = defaultdict(float)
    for row in rows:
        calls[row.kind, row.name, row.sizes, row.dtypes] += row.calls / steps
    return calls


def _differing(*sides: tuple[tuple[WorkRow, ...], int]) -> Iterator[Difference]:
    was, now = (_counts_of(rows, steps) for rows, steps in sides)
    changes = [
        Difference(*key, was[key], now[key])
        for key in sorted(was.keys() | now.keys())
        if was[key] != now[key]
    ]
    changes.sort(key=lambda row: -abs(row.after_calls - row.before_calls))
    yield from changes[:_MOST_ROWS]
