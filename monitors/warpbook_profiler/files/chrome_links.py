"""Which call put which work on the GPU, by the first key that links a file's events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Bools,
    Category,
    Columns,
    Int64s,
    groups,
    rows_by,
)
from warpbook_profiler.events.intervals import enclosing, levels
from warpbook_profiler.facts.calls import LAUNCH
from warpbook_profiler.files.chrome_records import Piece

#: of the work on the GPU, what a key links at least if it is the file's
_MOSTLY = 0.5
#: times of arrows are rounded by themselves
_ROUNDED_US = 0.001


class Key(NamedTuple):
    """What a launch and its work have in common, by its name in the file."""

    name: str
    #: of the file's calls; empty for arrows, which are of the category `name`
    column: str = ""
    #: all launches of one operator have the same number, and are told apart by order
    of_operator: bool = False


USUAL = Key("correlation", "correlation")
#: in the order in which they are tried
KEYS = (
    USUAL,
    Key("External id", "external", of_operator=True),
    Key("ac2g"),
    Key("async_cpu_to_gpu"),
    Key("async_gpu"),
    Key("async"),
)
#: of a column the field and the key of those who spell it otherwise: torch before 1.13
#: and XLA
OTHER_KEYS = {
    "external": ("older_external", "external id"),
    "correlation": ("correlation_id", "correlation_id"),
}
FLOWS = frozenset(key.name for key in KEYS if not key.column)


class Arrow(NamedTuple):
    """One end of an arrow: where in the file it is, and which arrow it is of."""

    flow: str
    id: int | str
    process: int
    thread: int
    at_us: float


def arrows(
    pieces: Iterable[Piece],
    processes: Mapping[int | str, int],
    threads: Mapping[int | str, int],
) -> Iterator[Arrow]:
    """Give the ends of all arrows at processes and threads that have events."""
    for piece in pieces:
        for one in piece.events or ():
            if one.cat in FLOWS and one.pid in processes and one.tid in threads:
                place = processes[one.pid], threads[one.tid]
                yield Arrow(one.cat, one.id, *place, one.ts)


def linked(
    calls: Mapping[str, Any], names: Sequence[str], ends: Iterable[Arrow]
) -> tuple[Int64s, Key]:
    """Return the number that each call shares with its work, and the key it is from.

    Args:
        calls: by name, a column of calls and work on the GPU, in any order.
        names: those of events.
        ends: those of all arrows; looked at only where no number links.
    """
    is_call = calls["category"] == Category.API
    on_gpu = np.isin(calls["category"], ON_GPU)
    usual = (calls[USUAL.column], USUAL)
    if not is_call.any() or not on_gpu.any():
        return usual
    first = drawn = None
    for key in KEYS:
        if key.column:
            numbers = calls[key.column]
            if key.of_operator:
                launching = np.array([bool(LAUNCH.match(name)) for name in names])
                is_launch = is_call & launching[calls["name"]]
                numbers = _in_turn(numbers, calls["start_us"], is_launch, on_gpu)
        else:
            drawn = list(ends) if drawn is None else drawn
            mine = [end for end in drawn if end.flow == key.name]
            numbers = _drawn(calls, is_call, on_gpu, mine)
        of_calls = numbers[is_call]
        share = np.isin(numbers[on_gpu], of_calls[of_calls > 0]).mean()
        if share >= _MOSTLY:
            return numbers, key
        if share and first is None:
            first = numbers, key
    return first or usual


def _in_turn(ids: Int64s, start_us: Any, is_launch: Bools, on_gpu: Bools) -> Int64s:
    """Number launches and work of one id by their order, where they are as many."""
    numbers = np.full(len(ids), NONE, np.int64)
    rows = np.flatnonzero((is_launch | on_gpu) & (ids > 0))
    if not len(rows):
        return numbers
    first, of_id = groups(ids[rows])
    launches = np.bincount(of_id[is_launch[rows]], minlength=len(first))
    works = np.bincount(of_id[on_gpu[rows]], minlength=len(first))
    order = np.lexsort((start_us[rows], on_gpu[rows], of_id))
    rows, of_id = rows[order], of_id[order]
    # those of an id stand together, its launches first
    begin = np.cumsum(launches + works) - launches - works
    turn = (
        np.arange(len(rows)) - begin[of_id] - np.where(on_gpu[rows], launches[of_id], 0)
    )
    known = (launches == 1) | (launches == works)
    last = np.maximum(launches - 1, 0)
    number = begin[of_id] + np.minimum(turn, last[of_id]) + 1
    numbers[rows] = np.where(known[of_id], number, NONE)
    return numbers


def _drawn(
    calls: Mapping[str, Any], is_call: Bools, on_gpu: Bools, ends: list[Arrow]
) -> Int64s:
    """Number calls by row, and work by the call that an arrow joins it with."""
    numbers = np.full(len(is_call), NONE, np.int64)
    row = _under(calls, ends)
    of_call: dict[int | str, int] = {}
    for end, at in zip(ends, row.tolist(), strict=True):
        if at != NONE and is_call[at]:
            # an id of two calls is nobody's
            of_call[end.id] = at if of_call.get(end.id, at) == at else NONE
    for end, at in zip(ends, row.tolist(), strict=True):
        call = of_call.get(end.id, NONE)
        if NONE not in (at, call) and on_gpu[at]:
            numbers[at] = numbers[call] = call + 1
    return numbers


def _under(calls: Mapping[str, Any], ends: list[Arrow]) -> Int64s:
    """Return the row of the last event begun on each end's thread, or NONE if over."""
    count = len(calls["start_us"])
    at_us = np.array([end.at_us for end in ends])
    process, thread = (
        np.array([(end.process, end.thread) for end in ends], np.int64).reshape(-1, 2).T
    )
    _, group = groups(
        np.append(calls["process"], process), np.append(calls["thread"], thread)
    )
    at = np.append(calls["start_us"], at_us + _ROUNDED_US)
    order = np.lexsort((np.arange(len(at)) >= count, at, group))
    latest = np.maximum.accumulate(np.where(order < count, np.arange(len(at)), NONE))
    row = np.full(len(at), NONE, np.int64)
    row[order] = np.where(latest == NONE, NONE, order[latest])
    row = row[count:]
    over_us = np.append(calls["start_us"] + calls["duration_us"], -np.inf)[row]
    same = (row != NONE) & (group[row] == group[count:])
    return np.where(same & (over_us >= at_us - _ROUNDED_US), row, NONE)


def owned(events: Columns) -> Columns:
    """Give operators and the work within them one number, where the file has none.

    The innermost operator around a launch owns what it launched.
    """
    operators, api = (
        np.flatnonzero(events.is_in(category))
        for category in (Category.OPERATOR, Category.API)
    )
    on_gpu = np.flatnonzero(events.is_in(*ON_GPU))
    named = np.array(["::" in name for name in events.names] or [False])
    operators = operators[named[events.name[operators]] & ~events.annotates[operators]]
    numbers, api = events.external[operators], api[events.correlation[api] != NONE]
    has_numbers = np.isin(numbers[numbers != NONE], events.external[on_gpu]).any()
    if has_numbers or not len(operators) or not len(api):
        return events
    order = api[np.argsort(events.correlation[api], kind="stable")]
    known = events.correlation[order]
    at = np.minimum(np.searchsorted(known, events.correlation[on_gpu]), len(known) - 1)
    is_known = known[at] == events.correlation[on_gpu]
    work, launch = on_gpu[is_known], order[at[is_known]]
    external = np.full(len(events), NONE, np.int64)
    end_ns = events.end_ns
    launched = {
        int(events.track[launch[rows[0]]]): rows
        for rows in rows_by(events.track[launch])
    }
    nothing = np.zeros(0, np.int64)
    for mine in rows_by(events.track[operators]):
        own = operators[mine]
        parent = np.full(len(own), NONE, np.int64)
        for top, above in levels(events.start_ns[own], end_ns[own]):
            parent[top] = above
        theirs = launched.get(int(events.track[own[0]]), nothing)
        owner = enclosing(
            events.start_ns[own], end_ns[own], parent, events.start_ns[launch[theirs]]
        )
        external[own] = own
        external[work[theirs]] = np.append(own, NONE)[owner]
    return replace(events, external=external)
