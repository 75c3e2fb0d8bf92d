"""Whether the past is being kept, in words for a person."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


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
