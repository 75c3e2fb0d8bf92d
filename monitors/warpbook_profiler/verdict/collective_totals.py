"""What collectives move, and how fast the links between the ranks did it.

The rate of the bus is that of NCCL's own tests: what each rank sends at least, whatever
the algorithm, over the time of the kernels. A kernel that waits for another rank takes
longer, so it is what the links reach at least.
"""

from __future__ import annotations

from warpbook_profiler.facts.roofline import Called
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.model.figures import CollectiveTotal

#: of a name without its underscores: how often all but its own part of the size
#: crosses the bus of a rank; of the others all of it does
_PARTS = {"reducescatter": 1, "allreduce": 2, "allgather": 1, "alltoall": 1}
_WHOLE = ("broadcast", "reduce", "send", "recv")
_MOST_RANKS, _MOST_ROWS = 1_000_000, 20


def collective_totals(operators: list[Called]) -> tuple[CollectiveTotal, ...]:
    """Add up by collective and ranks, the longest first.

    Args:
        operators: what called the kernels.
    """
    groups: dict[tuple[str, int], list[Called]] = {}
    for operator in operators:
        told = operator.operands.message
        if told is not None and 0 < told.ranks <= _MOST_RANKS:
            groups.setdefault((told.collective, told.ranks), []).append(operator)
    totals = [_total(*key, rows) for key, rows in groups.items()]
    totals.sort(key=lambda total: (-total.time_ns, total.name))
    return tuple(totals[:_MOST_ROWS])


def _total(name: str, ranks: int, rows: list[Called]) -> CollectiveTotal:
    time_ns = round(sum(row.time_ns for row in rows))
    sizes = [_size_bytes(row) for row in rows]
    known = [size for size in sizes if size is not None]
    size_bytes = sum(known) if len(known) == len(sizes) else None
    share = _share(name.replace("_", "").lower(), ranks)
    bus_bytes = None
    if size_bytes is not None and share is not None:
        bus_bytes = round(size_bytes * share)
    calls = sum(row.calls for row in rows)
    return CollectiveTotal(name, ranks, calls, time_ns, size_bytes, bus_bytes)


def _share(name: str, ranks: int) -> float | None:
    for kind, times in _PARTS.items():
        if kind in name:
            return times * (ranks - 1) / ranks
    return 1.0 if any(kind in name for kind in _WHOLE) else None


def _size_bytes(row: Called) -> int | None:
    told = row.operands.message
    if told is None or told.numbers < 0 or told.dtype not in ITEM_BYTES:
        return None
    return told.numbers * ITEM_BYTES[told.dtype] * row.calls
