"""The tables of nodes as SQLAlchemy sees them; `schema_5.sql` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from warpbook.hub.database.competition_tables import METADATA as METADATA


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _large(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _maybe_large(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger) for name in names]


NODES = Table(
    "nodes",
    METADATA,
    *_text("id", "name", "token_digest", "state"),
    *_large("registered_ms"),
    *_maybe_large("seen_ms"),
    *_large("dropped"),
)
NODE_STREAMS = Table(
    "node_streams", METADATA, *_text("node", "stream"), *_large("number", "seen_ms")
)
NODE_GPUS = Table(
    "node_gpus",
    METADATA,
    *_text("node", "gpu"),
    Column("place", Integer),
    *_text("name", "state", "why"),
    *_large("seen_ms", "read_ms"),
    *_maybe_large("active_ms", "sm_ms", "tensor_ms"),
    *_maybe_large("memory_used_bytes", "memory_total_bytes", "idle_since_ms"),
    *_text("held"),
)
NODE_HOLDERS = Table(
    "node_holders",
    METADATA,
    *_text("id", "node", "identity"),
    *_maybe_large("uid"),
    Column("person", Text),
    Column("claimant", Text),
    *_text("workload_kind", "workload"),
    *_large("seen_ms"),
)
GPU_SPANS = Table(
    "gpu_spans",
    METADATA,
    *_text("node", "gpu"),
    Column("width_ms", Integer, nullable=False),
    *_large("from_ms", "read_ms"),
    *_maybe_large("active_ms", "sm_ms", "tensor_ms", "energy_mj"),
)
HOLDER_SPANS = Table(
    "holder_spans",
    METADATA,
    *_text("holder", "gpu"),
    Column("width_ms", Integer, nullable=False),
    *_large("from_ms", "held_ms"),
    *_maybe_large("busy_ms", "energy_mj"),
)
