"""The tables of a platform as SQLAlchemy sees them; `schema_1.sql` makes them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from warpbook_hub.database.lease_tables import METADATA as METADATA


def _text(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


LTI_CONTEXTS = Table(
    "lti_contexts",
    METADATA,
    *_text("course", "issuer", "context", "title"),
    *_text("memberships_url", "line_items_url"),
    Column("bound_ms", BigInteger, nullable=False),
    Column("asked_ms", BigInteger),
    *_text("note"),
)
LTI_PEOPLE = Table("lti_people", METADATA, *_text("issuer", "subject", "person"))
LTI_LINE_ITEMS = Table("lti_line_items", METADATA, *_text("publication", "url"))
LTI_SCORES = Table(
    "lti_scores",
    METADATA,
    *_text("id", "publication", "person"),
    Column("number", Integer, nullable=False),
    Column("points", Double, nullable=False),
    Column("most_points", Double, nullable=False),
    Column("stamped_ms", BigInteger, nullable=False),
    *_text("state"),
    Column("tries", Integer, nullable=False),
    Column("not_before_ms", BigInteger, nullable=False),
    Column("answered_ms", BigInteger),
    *_text("answer"),
)
