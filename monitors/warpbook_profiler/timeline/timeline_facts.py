"""What is known about single events of a timeline beside name and time.

Events share few launch shapes and operands, so each distinct combination is written
down once. Links lead from work on a GPU to the call that launched it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Category,
    Columns,
    Int32s,
    Int64s,
    groups,
)
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.kernels import occupancy_ratio
from warpbook_profiler.model.timeline_answers import EventFacts

MAX_FACTS = 100_000
MAX_OPERANDS = 32
MAX_DIMS = 16
MAX_DTYPE_LENGTH = 40
#: as exact as a browser's numbers
_MOST = 2**53 - 1


def facts_of(events: Columns, run: Run) -> tuple[tuple[EventFacts, ...], Int32s]:
    """Give the distinct facts, and for each event its position there or NONE."""
    operand = _operands_within(events)
    keys = (events.shape, operand, events.size_bytes)
    known = np.flatnonzero(np.any([key != NONE for key in keys], axis=0))
    fact = np.full(len(events), NONE, np.int32)
    if not len(known):
        return (), fact
    # the same launch fills GPUs of different size differently
    first, group = groups(*(key[known] for key in (*keys, events.device)))
    fact[known] = np.where(group < MAX_FACTS, group, NONE)
    rows = known[first[:MAX_FACTS]]
    return tuple(_facts(events, run, int(row), int(operand[row])) for row in rows), fact


def _operands_within(events: Columns) -> Int32s:
    """Give each event its operands: of an operator, or of the one that it is in."""
    owners = np.flatnonzero((events.operand != NONE) & (events.external != NONE))
    if not len(owners):
        return events.operand
    order = owners[np.argsort(events.external[owners], kind="stable")]
    ids = events.external[order]
    place = np.minimum(np.searchsorted(ids, events.external), len(ids) - 1)
    is_within = (ids[place] == events.external) & events.is_in(*ON_GPU)
    within: Int32s = np.where(is_within, events.operand[order[place]], events.operand)
    return within


def _facts(events: Columns, run: Run, row: int, operand: int) -> EventFacts:
    facts: dict[str, object] = {}
    if events.shape[row] != NONE:
        shape, device = events.shapes[events.shape[row]], int(events.device[row])
        gpu = run.gpus[device] if 0 <= device < len(run.gpus) else None
        facts |= {
            "grid": shape.grid,
            "block": shape.block,
            "registers_per_thread": shape.registers_per_thread,
            "shared_memory_bytes": shape.shared_memory_bytes,
            "occupancy_ratio": gpu and occupancy_ratio(shape, gpu),
        }
    if operand != NONE:
        called_with = events.operands[operand]
        facts["dims"] = tuple(
            tuple(dims[:MAX_DIMS]) for dims in called_with.dims[:MAX_OPERANDS]
        )
        facts["dtypes"] = tuple(
            dtype[:MAX_DTYPE_LENGTH] for dtype in called_with.dtypes[:MAX_OPERANDS]
        )
    size_bytes = int(events.size_bytes[row])
    return EventFacts(**facts, size_bytes=None if size_bytes == NONE else size_bytes)  # type: ignore[arg-type]


def launches_of(events: Columns) -> Int32s:
    """Give for work on a GPU the position of the call that launched it, or NONE."""
    launch = np.full(len(events), NONE, np.int32)
    has_id = events.correlation != NONE
    calls = np.flatnonzero(has_id & events.is_in(Category.API))
    work = np.flatnonzero(has_id & events.is_in(*ON_GPU))
    if len(calls) and len(work):
        # of a runtime call and the driver call within it the runtime's
        calls = calls[np.argsort(events.correlation[calls], kind="stable")]
        ids, wanted = events.correlation[calls], events.correlation[work]
        place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        launch[work] = np.where(ids[place] == wanted, calls[place], NONE)
    return launch


def moved(positions: Int32s, kept: Int64s, count: int) -> Int32s:
    """Give positions among `count` events as those among the kept ones, or NONE."""
    place = np.full(count + 1, NONE, np.int32)
    place[kept] = np.arange(len(kept))
    # NONE is the last
    return place[positions[kept]]


def are_bounded(facts: Iterable[EventFacts]) -> bool:
    """Tell whether facts that came in are no larger than what is written here."""
    return all(_is_bounded(fact) for fact in facts)


def _is_bounded(facts: EventFacts) -> bool:
    sizes = [facts.registers_per_thread, facts.shared_memory_bytes, facts.size_bytes]
    numbers = [*(facts.grid or ()), *(facts.block or ())]
    numbers += [size for size in sizes if size is not None]
    for dims in facts.dims:
        numbers += dims
    return (
        len(facts.dims) <= MAX_OPERANDS
        and len(facts.dtypes) <= MAX_OPERANDS
        and all(len(dims) <= MAX_DIMS for dims in facts.dims)
        and all(len(dtype) <= MAX_DTYPE_LENGTH for dtype in facts.dtypes)
        and all(abs(number) <= _MOST for number in numbers)
    )
