"""Single values of the hub, by name."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from warpbook_hub.database.tables import SETTINGS

#: why the queue is paused
PAUSED = "paused"
#: what receipts are signed with
RECEIPT_KEY = "receipt_key"


def get(connection: Connection, name: str) -> str | None:
    """Give a value; None where there is none."""
    query = select(SETTINGS.c.value).where(SETTINGS.c.name == name)
    value = connection.execute(query).scalar()
    return None if value is None else str(value)


def put(connection: Connection, name: str, value: str | None) -> None:
    """Set a value; None takes it away."""
    connection.execute(delete(SETTINGS).where(SETTINGS.c.name == name))
    if value is not None:
        connection.execute(insert(SETTINGS).values(name=name, value=value))
