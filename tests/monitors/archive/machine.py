"""A machine with two GPUs, whose frames are what tests write and read."""

from collections.abc import Iterator

from warpbook_monitors.frames import Device, Frame, Metric, Reading
from warpbook_monitors.history.seconds import REASONS

#: begin of a day, and so of an hour and of a segment
BEGIN_MS = 1_800_000_000_000.0 // 86_400_000 * 86_400_000

METRICS = (
    Metric("power_watts", "watts", "Power"),
    Metric("memory_used_bytes", "bytes", "Memory used"),
    Metric("sm_active_ratio", "ratio", "SM active"),
    Metric(REASONS, "flags", "Clocks-event reasons"),
    Metric("energy_joules", "joules", "Energy"),
)


def gpu(at: int, origin: str = "live", metrics: tuple[Metric, ...] = METRICS) -> Device:
    return Device(f"gpu:{at}", "gpu", "NVIDIA H200", at, origin, metrics)  # type: ignore[arg-type]


DEVICES = (gpu(0), gpu(1))


def frame(seq: int, time_ms: float, label: str | None = None) -> Frame:
    """A frame whose values tell its number."""
    values = (
        100.0 + seq % 7 / 1000,
        8 * 2**30 + seq * 2**21,
        round(seq % 10 / 10, 5),
        4 if seq % 2 else 0,
        1000 + seq / 100,
    )
    lost = seq % 50 == 49
    readings = (
        Reading(0, "ok", values),
        Reading(1, "lost", (), "It fell off the bus.")
        if lost
        else Reading(1, "ok", (None, *values[1:])),
    )
    return Frame(seq, time_ms, readings, label)


def frames(
    count: int, begin_ms: float = BEGIN_MS, step_ms: float = 100.0, seq: int = 0
) -> Iterator[Frame]:
    for number in range(seq, seq + count):
        yield frame(number, begin_ms + (number - seq + 1) * step_ms - 0.125)
