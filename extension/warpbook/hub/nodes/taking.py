"""Takes what agents tell: each interval once, into minutes and hours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import (
    Column,
    Connection,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)

from warpbook.hub.database import settings
from warpbook.hub.database.node_tables import (
    GPU_SPANS,
    HOLDER_SPANS,
    NODE_GPUS,
    NODE_HOLDERS,
    NODE_STREAMS,
    NODES,
)
from warpbook.hub.nodes import kernel_hints
from warpbook.hub.nodes.holders import Holders
from warpbook.hub.nodes.registry import weeks_kept
from warpbook_monitors.holders.node_protocol import (
    LONGEST_MS,
    GpuShare,
    Interval,
    Intervals,
    Taken,
)

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
#: for how long minutes are kept
MINUTES_KEPT_MS = 48 * HOUR_MS
_WEEK_MS = 7 * 24 * HOUR_MS
#: two clocks, and the way between them
_SLACK_MS = 5_000
#: of a node, whatever it says that it has
_MOST_GPUS = 64
_MOST_STREAMS = 500
_PRUNED = "nodes_pruned_ms"


class HeldNow(Struct, frozen=True):
    """A holder as the newest interval has it; in `node_gpus.held`."""

    holder: str
    processes: int
    memory_bytes: int | None
    held_ms: int
    busy_ms: int | None
    idle_since_ms: int | None
    #: PIDs, where hints of kernels are taken
    pids: tuple[int, ...] = ()


#: by key columns of a table of spans, what is added to the others
_Sums = dict[tuple[tuple[str, object], ...], dict[str, int | None]]


def take(connection: Connection, now_ms: int, node: str, message: Intervals) -> Taken:
    """Count a batch; what was counted before is passed over.

    Args:
        connection: of a transaction that writes; it is committed before the answer.
        now_ms: the server's time, by which the node's clock is corrected.
        node: whose token it came with.
        message: checked by its types.
    """
    ahead_ms = message.sent_ms - now_ms
    oldest_ms = now_ms - weeks_kept(connection) * _WEEK_MS
    numbers = _numbers(connection, node)
    holders = Holders(connection, now_ms, node)
    gpu_sums: _Sums = {}
    holder_sums: _Sums = {}
    newest: dict[str, tuple[int, GpuShare]] = {}
    refused = 0
    for interval in message.intervals:
        if interval.number <= numbers.get(interval.stream, 0):
            continue
        numbers[interval.stream] = interval.number
        end_ms = interval.to_ms - ahead_ms
        if not (oldest_ms < end_ms <= now_ms + _SLACK_MS and _is_possible(interval)):
            refused += 1
            continue
        for gpu in interval.gpus:
            before = newest.get(gpu.gpu)
            # what another start of the agent left behind is older
            if before is None or before[0] <= end_ms:
                newest[gpu.gpu] = (min(end_ms, now_ms), gpu)
            for width_ms in (MINUTE_MS, HOUR_MS):
                if width_ms == MINUTE_MS and end_ms < now_ms - MINUTES_KEPT_MS:
                    continue
                _add_up(gpu_sums, holder_sums, holders, node, gpu, width_ms, end_ms)
    _note_streams(connection, now_ms, node, message, numbers)
    known = _known_gpus(connection, node, newest)
    _write(connection, GPU_SPANS, _of_known(gpu_sums, known))
    _write(connection, HOLDER_SPANS, _of_known(holder_sums, known))
    wants_pids = kernel_hints.policy(connection) != "off"
    for uuid in known & newest.keys():
        _note_gpu(connection, node, *newest[uuid], ahead_ms, holders, wants_pids)
    of = NODES.c.id == node
    values = {"seen_ms": now_ms, "dropped": message.dropped}
    connection.execute(update(NODES).where(of).values(**values))
    prune(connection, now_ms)
    return Taken(refused, wants_pids)


def _is_possible(interval: Interval) -> bool:
    """Whether no part of an interval is longer than it."""
    most_ms = interval.to_ms - interval.from_ms + _SLACK_MS
    if not 0 < interval.to_ms - interval.from_ms <= LONGEST_MS:
        return False
    for gpu in interval.gpus:
        of_gpu = (gpu.active_ms, gpu.sm_ms, gpu.tensor_ms)
        if gpu.read_ms > most_ms or any((ms or 0) > gpu.read_ms for ms in of_gpu):
            return False
        for share in gpu.holders:
            if share.held_ms > most_ms or (share.busy_ms or 0) > share.held_ms:
                return False
    return True


def _add_up(
    gpu_sums: _Sums,
    holder_sums: _Sums,
    holders: Holders,
    node: str,
    gpu: GpuShare,
    width_ms: int,
    end_ms: int,
) -> None:
    # to the span in which the interval ended
    from_ms = (end_ms - 1) // width_ms * width_ms
    when = (("gpu", gpu.gpu), ("width_ms", width_ms), ("from_ms", from_ms))
    _add(
        gpu_sums.setdefault((("node", node), *when), {}),
        # what activity is a share of
        read_ms=0 if gpu.active_ms is None else gpu.read_ms,
        active_ms=gpu.active_ms,
        sm_ms=gpu.sm_ms,
        tensor_ms=gpu.tensor_ms,
        energy_mj=gpu.energy_mj,
    )
    for share in gpu.holders:
        holder = holders.id_of(share.holder)
        _add(
            holder_sums.setdefault((("holder", holder), *when), {}),
            held_ms=share.held_ms,
            busy_ms=share.busy_ms,
            energy_mj=share.energy_mj,
        )


def _add(sums: dict[str, int | None], **more: int | None) -> None:
    for name, value in more.items():
        before = sums.get(name)
        known = [part for part in (before, value) if part is not None]
        sums[name] = sum(known) if known else None


def _of_known(sums: _Sums, gpus: set[str]) -> _Sums:
    return {key: values for key, values in sums.items() if dict(key)["gpu"] in gpus}


def _write(connection: Connection, table: Table, sums: _Sums) -> None:
    """Add to the rows of spans, or begin them; nobody else writes meanwhile."""
    if not sums:
        return
    names = [name for name, _ in next(iter(sums))]
    owner, times = table.c[names[0]], {dict(key)["from_ms"] for key in sums}
    keys = [table.c[name] for name in names]
    query = select(*keys).where(
        owner.in_({dict(key)[owner.name] for key in sums}), table.c.from_ms.in_(times)
    )
    begun = {tuple(zip(names, row, strict=True)) for row in connection.execute(query)}
    more = [
        {f"of_{name}": one for name, one in key}
        | {f"more_{name}": value for name, value in values.items()}
        for key, values in sums.items()
        if key in begun
    ]
    if more:
        connection.execute(_addition(table, keys), more)
    new = [{**dict(key), **values} for key, values in sums.items() if key not in begun]
    if new:
        connection.execute(insert(table), new)


def _addition(table: Table, keys: Sequence[Column[Any]]) -> Update:
    """Make the statement that adds; what is not known changes nothing."""
    of = [key == bindparam(f"of_{key.name}", type_=key.type) for key in keys]
    amounts = [column for column in table.c if column not in set(keys)]
    sums = {}
    for column in amounts:
        amount = bindparam(f"more_{column.name}", type_=column.type)
        sums[column.name] = func.coalesce(column + amount, column, amount)
    return update(table).where(and_(*of)).values(sums)


def _numbers(connection: Connection, node: str) -> dict[str, int]:
    query = select(NODE_STREAMS.c.stream, NODE_STREAMS.c.number).where(
        NODE_STREAMS.c.node == node
    )
    return {row.stream: row.number for row in connection.execute(query)}


def _note_streams(
    connection: Connection,
    now_ms: int,
    node: str,
    message: Intervals,
    numbers: dict[str, int],
) -> None:
    streams = NODE_STREAMS.c
    for stream in {interval.stream for interval in message.intervals}:
        values = {"number": numbers[stream], "seen_ms": now_ms}
        of = (streams.node == node) & (streams.stream == stream)
        change = update(NODE_STREAMS).where(of).values(**values)
        if not connection.execute(change).rowcount:
            row = {"node": node, "stream": stream, **values}
            connection.execute(insert(NODE_STREAMS).values(**row))
    if len(numbers) > _MOST_STREAMS:
        newest = (
            select(streams.stream)
            .where(streams.node == node)
            .order_by(streams.seen_ms.desc(), streams.stream)
            .limit(_MOST_STREAMS)
        )
        kept = list(connection.execute(newest).scalars())
        old = (streams.node == node) & streams.stream.not_in(kept)
        connection.execute(delete(NODE_STREAMS).where(old))


def _known_gpus(connection: Connection, node: str, named: Iterable[str]) -> set[str]:
    """Give the GPUs that are kept of a node: no more than it can have."""
    query = select(NODE_GPUS.c.gpu).where(NODE_GPUS.c.node == node)
    known = set(connection.execute(query).scalars())
    new = sorted(set(named) - known)
    return known | set(new[: max(_MOST_GPUS - len(known), 0)])


def _note_gpu(
    connection: Connection,
    node: str,
    end_ms: int,
    gpu: GpuShare,
    ahead_ms: int,
    holders: Holders,
    keeps_pids: bool,
) -> None:
    def corrected(time_ms: int | None) -> int | None:
        return None if time_ms is None else max(time_ms - ahead_ms, 0)

    held = [
        HeldNow(
            holders.id_of(share.holder),
            share.processes,
            share.memory_bytes,
            share.held_ms,
            share.busy_ms,
            corrected(share.idle_since_ms),
            share.pids if keeps_pids else (),
        )
        for share in gpu.holders
        if share.is_there
    ]
    values = {
        "place": gpu.index,
        "name": gpu.name,
        "state": gpu.state,
        "why": gpu.why,
        "seen_ms": end_ms,
        "read_ms": gpu.read_ms,
        "active_ms": gpu.active_ms,
        "sm_ms": gpu.sm_ms,
        "tensor_ms": gpu.tensor_ms,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
        "idle_since_ms": corrected(gpu.idle_since_ms),
        "held": msgspec.json.encode(held if gpu.is_listed else None).decode(),
    }
    of = (NODE_GPUS.c.node == node) & (NODE_GPUS.c.gpu == gpu.gpu)
    if connection.execute(select(NODE_GPUS.c.gpu).where(of)).first() is None:
        connection.execute(insert(NODE_GPUS).values(node=node, gpu=gpu.gpu, **values))
        return
    # an interval that waited in a spool is not the newest
    is_older = NODE_GPUS.c.seen_ms <= end_ms
    connection.execute(update(NODE_GPUS).where(of & is_older).values(**values))


def prune(connection: Connection, now_ms: int) -> None:
    """Once an hour, delete what is too old, and retired nodes without anything."""
    last_ms = int(settings.get(connection, _PRUNED) or 0)
    if 0 <= now_ms - last_ms < HOUR_MS:
        return
    settings.put(connection, _PRUNED, str(now_ms))
    oldest_ms = now_ms - weeks_kept(connection) * _WEEK_MS
    for table in (GPU_SPANS, HOLDER_SPANS):
        minutes = table.c.width_ms == MINUTE_MS
        old_minutes = minutes & (table.c.from_ms < now_ms - MINUTES_KEPT_MS)
        connection.execute(delete(table).where(old_minutes))
        connection.execute(delete(table).where(table.c.from_ms < oldest_ms))
    # spans of a holder begin before it was seen last
    gone = NODE_HOLDERS.c.seen_ms < oldest_ms - HOUR_MS
    connection.execute(delete(NODE_HOLDERS).where(gone))
    for table in (NODE_STREAMS, NODE_GPUS):
        connection.execute(delete(table).where(table.c.seen_ms < oldest_ms))
    parts = (GPU_SPANS, NODE_HOLDERS, NODE_STREAMS, NODE_GPUS)
    is_empty = and_(*(~exists().where(part.c.node == NODES.c.id) for part in parts))
    connection.execute(delete(NODES).where(NODES.c.state == "retired", is_empty))
