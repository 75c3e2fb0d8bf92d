"""The newest frames, before a segment holds them."""

from __future__ import annotations

import sqlite3

from warpbook_monitors.frames import Device, Telemetry


class Tail:
    """Frames since the last segment."""

    def append(self, message: Telemetry, devices: tuple[Device, ...]) -> None:
        """Take a message of the stream."""

    def recover(self, connection: sqlite3.Connection) -> None:
        """Take what a server before left."""

    def write(self, connection: sqlite3.Connection, is_last: bool) -> None:
        """Write what came."""

    def drop(self) -> None:
        """Forget what came."""
