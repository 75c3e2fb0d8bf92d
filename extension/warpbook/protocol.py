"""Every message between server, browser and kernel, typed once.

TypeScript types are generated from here (`make protocol`); CI fails on drift.
The telemetry records themselves are `warpbook_monitors.frames`, because a
recording is the stream on disk.

The browser opens `<base_url>/warpbook/api/v1/stream`. The server says `Hello`.
The client answers `Subscribe`, as often as it likes; then come `Frame`s, and
`Gap`, `Devices`, `CellReport` and `Error` as they happen.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from warpbook_monitors.frames import (
    PROTOCOL_VERSION,
    Absence,
    Device,
    Devices,
    Frame,
    Gap,
    Hello,
    Replay,
)
from warpbook_monitors.health import Condition
from warpbook_monitors.trace.cell_profile import CellProfile
from warpbook_monitors.verdict import Verdict

__all__ = [
    "PROTOCOL_VERSION",
    "Absence",
    "Capabilities",
    "CellProfile",
    "CellReport",
    "ClientMessage",
    "CloseCode",
    "Condition",
    "Device",
    "Devices",
    "Error",
    "Frame",
    "Gap",
    "Health",
    "Hello",
    "Replay",
    "ServerMessage",
    "StateNow",
    "Subscribe",
    "Unsubscribe",
    "Verdict",
    "Verdicts",
]

#: A client message is refused beyond this size.
MAX_CLIENT_MESSAGE_BYTES = 4096
#: A cell report is refused beyond this size.
MAX_REPORT_BYTES = 1_000_000

#: Environment of kernels that a warpbook server starts.
ENV_INGEST_URL = "WARPBOOK_INGEST_URL"
ENV_INGEST_SECRET = "WARPBOOK_INGEST_SECRET"


class CloseCode:
    """Why the server closed a stream, in the range that RFC 6455 leaves free."""

    #: the client speaks another version of the protocol
    PROTOCOL_VERSION = 4001
    #: too many messages that could not be understood
    GARBAGE = 4002
    #: the server's limit of viewers is reached
    TOO_MANY_VIEWERS = 4003


class Subscribe(Struct, frozen=True, tag="subscribe", forbid_unknown_fields=True):
    """Ask for frames; a later one replaces an earlier one."""

    protocol: int
    #: frames per second; bounded by the server's base rate
    rate_hz: float = 10.0
    #: ids of the devices wanted; None is all
    devices: tuple[str, ...] | None = None
    #: send what the history holds after this Unix time in ms
    since_ms: float | None = None


class Unsubscribe(Struct, frozen=True, tag="unsubscribe", forbid_unknown_fields=True):
    """Stop the frames and keep the connection (a hidden page)."""


ClientMessage = Subscribe | Unsubscribe


class Error(Struct, frozen=True, tag="error"):
    """The last client message was refused; the stream goes on."""

    code: Literal["garbage", "protocol_version", "rate", "devices", "since"]
    message: str


class CellReport(Struct, frozen=True, tag="cell_report"):
    """The profile of one cell, from the kernel that ran it to every open view."""

    #: unique, chosen by the kernel
    id: Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,64}$")]
    protocol: int
    kernel_id: str
    #: the notebook's file as the kernel was started for it: to show, not to match
    notebook: str | None
    #: id of the cell in the notebook, where the frontend told the kernel
    cell_id: str | None
    execution_count: int | None
    #: first line of the cell
    title: Annotated[str, Meta(max_length=200)]
    started_ms: float
    ended_ms: float
    status: Literal["ok", "error", "interrupted"]
    profile: CellProfile


class Verdicts(Struct, frozen=True, tag="verdicts"):
    """What held each GPU back over the last seconds; comes once a second."""

    time_ms: float
    window_s: float
    #: by device id; a GPU that is not read now is left out
    verdicts: dict[str, Verdict]


class Health(Struct, frozen=True, tag="health"):
    """What slowed each GPU over the last minute; comes once a second."""

    time_ms: float
    window_s: float
    #: by device id, worst first; a GPU that is not read now is left out
    conditions: dict[str, tuple[Condition, ...]]


ServerMessage = Hello | Devices | Frame | Gap | Error | CellReport | Verdicts | Health


class Capabilities(Struct, frozen=True):
    """Answer of `GET <base_url>/warpbook/api/v1/capabilities`."""

    protocol: int
    version: str
    #: the rates that a subscription may have
    min_rate_hz: float
    max_rate_hz: float
    history_seconds: float
    devices: tuple[Device, ...]
    absences: tuple[Absence, ...]
    replay: Replay | None
    #: version of the Bokeh whose BokehJS this server serves, if it has one
    bokeh: str | None


class StateNow(Struct, frozen=True):
    """Answer of `GET .../api/v1/state` and of the ingest: the newest frame."""

    protocol: int
    version: str
    devices: tuple[Device, ...]
    absences: tuple[Absence, ...]
    replay: Replay | None
    frame: Frame | None
    #: by device id, over the last seconds; empty until there are some
    verdicts: dict[str, Verdict] = {}
