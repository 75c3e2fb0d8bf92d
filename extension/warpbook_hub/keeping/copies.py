"""All rows of a hub's database, from one kind to another, and their proof."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, Table, insert, select

from warpbook_hub.database.tables import TABLES

#: at a time
_ROWS = 500


def copy_rows(source: Connection, target: Connection) -> int:
    """Write every row of one database into another, whose tables are empty.

    Both are in a transaction: readers of the target see all of it or nothing.

    Returns:
        how many rows there are.
    """
    copied = 0
    for table in TABLES:
        for rows in _pieces(source, table):
            target.execute(insert(table), rows)
            copied += len(rows)
    return copied


def digests(connection: Connection) -> dict[str, str]:
    """Give the SHA-256 of each table's rows, in the order of their own text."""
    return {table.name: _digest(connection, table) for table in TABLES}


def _digest(connection: Connection, table: Table) -> str:
    rows = sorted(
        msgspec.json.encode(list(row)) for row in connection.execute(select(table))
    )
    whole = sha256()
    for row in rows:
        whole.update(sha256(row).digest())
    return whole.hexdigest()


def _pieces(source: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    result = source.execution_options(yield_per=_ROWS).execute(select(table))
    for rows in result.mappings().partitions(_ROWS):
        yield [dict(row) for row in rows]
