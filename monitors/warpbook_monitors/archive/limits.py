"""How much the archive keeps and for how long, and whether it keeps anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

DAY_MS = 24 * 3600 * 1000.0


@dataclass(frozen=True)
class Limits:
    """The oldest is removed first where one of them is reached."""

    #: every frame is kept for so long
    frames_ms: float = DAY_MS
    #: summaries of seconds and minutes, and records of cells and alerts
    summaries_ms: float = 30 * DAY_MS
    #: of the whole file
    size_bytes: int = 4 * 2**30
    #: of it, for reports, receipts, cells, alerts and post-mortems, and how many
    records_bytes: int = 512 * 2**20
    records: int = 100_000
    #: of it, for the events of reports' timelines
    timelines_bytes: int = 512 * 2**20
    #: writing stops before the disk has less than this left
    least_free_bytes: int = 64 * 2**20


class Keeping(Struct, frozen=True, tag="keeping"):
    """How the archive stands; sent after each hello and when it changes."""

    #: "on"; "off" by a setting; "stopped" by a full disk, a newer format, ...;
    #: "other_server" where another server of the same person keeps the history
    state: Literal["on", "off", "stopped", "other_server"]
    #: Unix ms of the oldest reading that is kept; None where there is none
    from_ms: float | None
    size_bytes: int
    #: what is wrong and what to do; empty where nothing is
    message: str = ""
