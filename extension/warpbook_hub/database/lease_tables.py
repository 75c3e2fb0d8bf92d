"""The tables of GPU leases as SQLAlchemy sees them; `schema_1.sql` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from warpbook_hub.database.tables import METADATA as METADATA

LEASE_GPUS = Table(
    "lease_gpus",
    METADATA,
    Column("id", Text, nullable=False),
    Column("node", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("problem", Text, nullable=False),
    Column("is_clear", Integer, nullable=False),
    Column("idle_end_ms", BigInteger, nullable=False),
    Column("energy_mj", BigInteger),
    Column("seen_ms", BigInteger, nullable=False),
)
GPU_LEASES = Table(
    "gpu_leases",
    METADATA,
    Column("id", Text, nullable=False),
    Column("course", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("minutes", Integer, nullable=False),
    Column("asked_ms", BigInteger, nullable=False),
    Column("gpu", Text),
    Column("granted_ms", BigInteger),
    Column("until_ms", BigInteger),
    Column("busy_ms", BigInteger),
    Column("ended_ms", BigInteger),
    Column("energy_from_mj", BigInteger),
    Column("energy_mj", BigInteger),
    Column("note", Text, nullable=False),
)
GPU_SESSIONS = Table(
    "gpu_sessions",
    METADATA,
    Column("id", Text, nullable=False),
    Column("course", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("starts_ms", BigInteger, nullable=False),
    Column("ends_ms", BigInteger, nullable=False),
    Column("made_by", Text, nullable=False),
)
