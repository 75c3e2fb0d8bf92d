"""One thread that writes, and commits what many ask for together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from sqlalchemy import Connection

from warpbook.hub.database.opening import HubDatabase

Value = TypeVar("Value")


class Writer:
    """Takes writes from any thread or event loop; none of them waits for the disk.

    `await asyncio.wrap_future(writer.submit(write))` gives the value of `write` once
    it is on the disk.
    """

    def __init__(self, database: HubDatabase) -> None:
        """Start the thread."""
        raise NotImplementedError

    def submit(self, write: Callable[[Connection], Value]) -> Future[Value]:
        """Have something written; the future is done once it is on the disk.

        What `write` raises is given to its own future only, and what it wrote is
        undone; others of the same commit are not touched.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Write what was asked for, then end the thread."""
        raise NotImplementedError
