"""The tables of competitions as SQLAlchemy sees them; `schema_1.sql` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ColumnElement, Integer, Table, Text, select

from warpbook_hub.database.lti_tables import METADATA as METADATA
from warpbook_hub.database.tables import JOBS

COMPETITIONS = Table(
    "competitions",
    METADATA,
    Column("publication", Text, nullable=False),
    Column("opened_ms", BigInteger, nullable=False),
    Column("freezes_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
)
COMPETITORS = Table(
    "competitors",
    METADATA,
    Column("publication", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("pseudonym", Text, nullable=False),
    Column("pseudonym_key", Text, nullable=False),
    Column("joined_ms", BigInteger, nullable=False),
)
FINALS = Table(
    "finals",
    METADATA,
    Column("id", Text, nullable=False),
    Column("publication", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("grader", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("rounds", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
)
FINAL_JOBS = Table(
    "final_jobs",
    METADATA,
    Column("job", Text, nullable=False),
    Column("final", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("place", Integer, nullable=False),
)


def outside_finals() -> ColumnElement[bool]:
    """Leave out of `JOBS` those of finals: marks and the queue's order know none."""
    return JOBS.c.id.not_in(select(FINAL_JOBS.c.job))
