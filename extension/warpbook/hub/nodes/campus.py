"""The campus board: what every GPU of every node does now, and who holds it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, Row, select

from warpbook.hub.database.node_tables import NODE_GPUS, NODE_HOLDERS
from warpbook.hub.database.tables import PEOPLE
from warpbook.hub.leases import board
from warpbook.hub.nodes import kernel_hints
from warpbook.hub.nodes.kernel_hints import NOTHING_SAID, HintsNow, Said
from warpbook.hub.nodes.registry import HEARD_MS, NodeInfo, nodes
from warpbook.hub.nodes.taking import HeldNow
from warpbook.kernel_hints_protocol import Policy

_decode_held = msgspec.json.Decoder(tuple[HeldNow, ...] | None).decode


class BoardHolder(Struct, frozen=True):
    """Somebody who holds a GPU."""

    #: user name of the account's owner; None if the hub knows nobody of that account
    username: str | None
    #: None: the process can't be found on the node
    uid: int | None
    #: user name that the process gives; a claim, and None if it is the account's own
    claim: str | None
    workload_kind: str
    workload: str
    processes: int
    memory_bytes: int | None
    #: share of its time in which its kernels ran; None where the driver can't tell
    busy_ratio: float | None
    #: None while it works, or if nobody can tell
    idle_since_ms: int | None
    #: what the account's owner says of these processes, and nobody has checked
    hints: tuple[Said, ...] = ()


class CampusGpu(Struct, frozen=True):
    """A GPU now."""

    gpu: str
    index: int | None
    name: str
    #: "works", "held" (in use, and whether it works is unknown), "idle" (held and
    #: without work), "free", "unknown" (does not work, and its holders can't be
    #: listed), "unread" or "lost"
    state: str
    #: what the node's driver says of its state
    why: str
    seen_ms: int
    active_ratio: float | None
    sm_ratio: float | None
    tensor_ratio: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    idle_since_ms: int | None
    #: None: not known
    holders: tuple[BoardHolder, ...] | None
    #: "leased" or "grades", where the hub itself has given it away
    use: str


class CampusNode(Struct, frozen=True):
    """A node with its GPUs."""

    node: NodeInfo
    gpus: tuple[CampusGpu, ...]


#: in the order in which they are counted
STATES = ("works", "held", "idle", "free", "unknown", "unread", "lost")


class _HintsAbout(NamedTuple):
    """Finds what is said of a holder's processes, as far as it may be shown now."""

    hints: HintsNow
    policy: Policy
    now_ms: int

    def of(self, username: str | None, gpu: str, held: HeldNow) -> tuple[Said, ...]:
        if username is None or not held.pids:
            return ()
        return self.hints.about(username, gpu, held.pids, self.now_ms, self.policy)


def campus(
    connection: Connection, now_ms: int, hints: HintsNow = NOTHING_SAID
) -> list[CampusNode]:
    """Give all nodes that are known, each with the GPUs that its agent has told of.

    Args:
        connection: of a transaction that reads.
        now_ms: the server's time.
        hints: what people's servers say of their kernels.
    """
    uses = {
        gpu.id: "leased" if gpu.state == "ending" else gpu.state
        for gpu in board.gpus(connection, now_ms)
        if gpu.state in ("leased", "ending", "grades")
    }
    holders = _holders(connection)
    about = _HintsAbout(hints, kernel_hints.policy(connection), now_ms)
    query = select(NODE_GPUS).order_by(NODE_GPUS.c.place, NODE_GPUS.c.gpu)
    rows = connection.execute(query).all()
    return [
        CampusNode(
            node,
            tuple(
                _gpu(row, node, now_ms, holders, uses.get(row.gpu, ""), about)
                for row in rows
                if row.node == node.id
            ),
        )
        for node in nodes(connection, now_ms)
    ]


def counts(shown: list[CampusNode]) -> dict[str, int]:
    """Count GPUs by state; every state is there."""
    states = [gpu.state for node in shown for gpu in node.gpus]
    return {state: states.count(state) for state in STATES}


def _holders(connection: Connection) -> dict[str, Row[Any]]:
    """Give by id what is known of those who may hold a GPU now."""
    owner, claimant = PEOPLE.alias(), PEOPLE.alias()
    query = (
        select(
            NODE_HOLDERS,
            owner.c.username.label("username"),
            claimant.c.username.label("claim"),
        )
        .outerjoin(owner, owner.c.id == NODE_HOLDERS.c.person)
        .outerjoin(claimant, claimant.c.id == NODE_HOLDERS.c.claimant)
    )
    return {row.id: row for row in connection.execute(query)}


def _gpu(
    row: Row[Any],
    node: NodeInfo,
    now_ms: int,
    holders: dict[str, Row[Any]],
    use: str,
    about: _HintsAbout,
) -> CampusGpu:
    listed = _decode_held(row.held)
    held = None
    if listed is not None:
        present = [one for one in listed if one.holder in holders]
        held = tuple(
            _holder(one, holders[one.holder], row.gpu, about) for one in present
        )
    active, sm, tensor = (
        _ratio(ms, row.read_ms) for ms in (row.active_ms, row.sm_ms, row.tensor_ms)
    )
    if not node.is_heard or row.seen_ms <= now_ms - HEARD_MS:
        state = "lost"
    elif row.state != "ok":
        state = "unread"
    elif row.idle_since_ms is None and (active is not None or sm is not None):
        state = "works"
    elif held is None:
        state = "unknown"
    elif not held:
        state = "free"
    else:
        state = "held" if row.idle_since_ms is None else "idle"
    # what is not read now is not shown as if it were
    is_now = state not in ("lost", "unread")
    return CampusGpu(
        gpu=row.gpu,
        index=row.place,
        name=row.name,
        state=state,
        why=row.why or row.state,
        seen_ms=row.seen_ms,
        active_ratio=active if is_now else None,
        sm_ratio=sm if is_now else None,
        tensor_ratio=tensor if is_now else None,
        memory_used_bytes=row.memory_used_bytes if is_now else None,
        memory_total_bytes=row.memory_total_bytes,
        idle_since_ms=row.idle_since_ms if is_now else None,
        holders=held if is_now else None,
        use=use,
    )


def _holder(held: HeldNow, row: Row[Any], gpu: str, about: _HintsAbout) -> BoardHolder:
    return BoardHolder(
        row.username,
        row.uid,
        row.claim,
        row.workload_kind,
        row.workload,
        held.processes,
        held.memory_bytes,
        None if held.busy_ms is None else _ratio(held.busy_ms, held.held_ms),
        held.idle_since_ms,
        about.of(row.username, gpu, held),
    )


def _ratio(part_ms: int | None, whole_ms: int) -> float | None:
    return None if part_ms is None or not whole_ms else part_ms / whole_ms
