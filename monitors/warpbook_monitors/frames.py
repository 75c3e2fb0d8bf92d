"""The records that telemetry is made of: on the wire, in history and on disk.

A stream is one `Hello`, then `Frame`s, `Gap`s and, when a device's description
changes, `Devices`. A recording is the same stream, one JSON line each. Values
are positional: `Reading.values[i]` belongs to `Device.metrics[i]`, so that a
frame of eight GPUs stays under 3 kB. `None` is "no reading", never zero.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PROTOCOL_VERSION = 1

State = Literal["ok", "stale", "lost", "no_permission", "not_supported", "unavailable"]
AbsenceReason = Literal[
    "no_library",
    "driver_not_loaded",
    "version_mismatch",
    "no_permission",
    "not_supported",
    "no_device",
    "lost",
    "not_installed",
    "unknown",
]
Unit = Literal[
    "ratio",
    "bytes",
    "bytes_per_s",
    "watts",
    "joules",
    "celsius",
    "mhz",
    "hz",
    "count",
    "ms",
    "flags",
]
#: "mig" is an instance of a GPU: its facts name the GPU in "parent"
DeviceKind = Literal["gpu", "mig", "host", "monitor"]
Severity = Literal["normal", "warning", "fault"]


class Metric(Struct, frozen=True):
    """One column of a device's readings."""

    name: str
    unit: Unit
    label: str
    #: "ok", or why this device never gives it
    state: State = "ok"
    #: the state in words, for a person; empty while ok
    why: str = ""


class Device(Struct, frozen=True):
    """Something that is read: a GPU, the host, or warpbook's own monitor."""

    #: stable over restarts: "gpu:<uuid>", "mig:<uuid>", "host", "monitor"
    id: str
    kind: DeviceKind
    name: str
    #: NVML's index for a GPU, otherwise None
    index: int | None
    #: whether its values are measured now or played back from a recording
    origin: Literal["live", "replay"]
    metrics: tuple[Metric, ...]
    #: what does not change: driver, memory_total_bytes, power_limit_watts, ...
    facts: dict[str, str | float | int] = {}


class Absence(Struct, frozen=True):
    """Something a person may expect here and that is not there, and why."""

    #: "NVML", "GPM on GPU 0", "Bokeh", ...
    what: str
    reason: AbsenceReason
    message: str
    #: what to do about it; empty when nothing can be done
    remedy: str = ""


class Replay(Struct, frozen=True):
    """Which recording is being played, so that every view can say so."""

    name: str
    #: Unix time in ms at which the recording was made
    recorded_ms: float
    duration_ms: float
    #: where it came from, in words
    description: str


class Reading(Struct, frozen=True):
    """One device at one tick."""

    #: position in `Hello.devices`
    device: int
    state: State
    #: as long as the device's metrics; empty unless the state is "ok"
    values: tuple[float | None, ...] = ()
    #: the state in words, for a person; empty while ok
    why: str = ""


class Hello(Struct, frozen=True, tag="hello"):
    """The first message of a stream and the first line of a recording."""

    protocol: int
    #: version of the warpbook that speaks
    version: str
    #: Unix time in ms by the sender's clock
    time_ms: float
    rate_hz: float
    devices: tuple[Device, ...]
    absences: tuple[Absence, ...] = ()
    replay: Replay | None = None


class Devices(Struct, frozen=True, tag="devices"):
    """The descriptions changed; devices that are new come last, so positions hold."""

    time_ms: float
    devices: tuple[Device, ...]
    #: what may be expected and is not there from now on
    absences: tuple[Absence, ...] = ()


class Frame(Struct, frozen=True, tag="frame"):
    """All devices at one tick of the sampler's clock."""

    #: counts periods of the base rate; a jump is ticks left out, as while backing off
    seq: int
    #: Unix time in ms of the tick
    time_ms: float
    readings: tuple[Reading, ...]
    #: what the machine was doing, where somebody labelled it (`warpbook record`)
    label: str | None = None


class Gap(Struct, frozen=True, tag="gap"):
    """Frames that will never come: nobody watched, or the reader was too slow."""

    from_ms: float
    to_ms: float
    reason: Literal["not_watched", "slow_reader", "expired", "restarted"]
    message: str


class Event(Struct, frozen=True, tag="event"):
    """Something that a GPU told by itself: an XID error, an ECC error."""

    time_ms: float
    #: id of the device
    device: str
    kind: Literal["xid", "ecc_single_bit", "ecc_double_bit", "page_retirement"]
    #: the XID number; None for the others
    code: int | None
    severity: Severity
    #: for a person: what it is
    title: str
    #: what it means, and what to do
    meaning: str
    remedy: str


Telemetry = Hello | Devices | Frame | Gap | Event


def end_ms(message: Devices | Frame | Gap | Event) -> float:
    """When a message was made, of a gap when it ended: Unix time."""
    return message.to_ms if isinstance(message, Gap) else message.time_ms
