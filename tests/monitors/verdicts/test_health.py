"""Conditions of the shipped recording, of faults, and what is not known."""

import msgspec
import pytest

from warpbook_monitors.frames import Device, Frame, Metric, Reading
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED
from warpbook_monitors.verdicts.health import Condition, Minute

METRICS = (
    Metric("clocks_event_reasons", "flags", "Clocks-event reasons"),
    Metric("memory_used_bytes", "bytes", "Memory used"),
)
FACTS = {"power_limit_watts": 700.0, "memory_total_bytes": 1000}
GPU = Device("gpu:1", "gpu", "NVIDIA H200", 0, "live", METRICS, FACTS)


def after(*rows: tuple[float | None, float | None]) -> tuple[Condition, ...]:
    """The conditions after readings at 10 Hz, the last of them now."""
    minute = Minute()
    for seq, row in enumerate(rows):
        frame = Frame(seq, 1000.0 + 100 * seq, (Reading(0, "ok", row),))
        minute.append(frame, [GPU])
    return minute.conditions([GPU])["gpu:1"]


def test_a_power_cap_is_told_with_its_share_and_is_normal() -> None:
    (cap,) = after(*[(4.0, 1.0)] * 378, *[(0.0, 1.0)] * 222)
    assert (cap.name, cap.severity, cap.share_ratio) == ("power cap", "normal", 0.63)
    assert cap.sentence == (
        "Power cap, 63 % of the last minute: the board is at its power limit of 700 W: "
        "normal for dense matrix work."
    )


def test_a_share_is_never_said_of_more_time_than_was_seen() -> None:
    (cap,) = after(*[(4.0, 1.0)] * 101)
    assert cap.sentence.startswith("Power cap, 100 % of the last 10 s: ")


@pytest.mark.parametrize(
    ("bits", "name", "severity", "words"),
    [
        (0x08, "hardware slowdown", "fault", "check cooling"),
        (0x40, "hardware thermal slowdown", "fault", "too hot"),
        (0x80, "power brake", "fault", "power supply"),
        (0x20, "thermal slowdown", "warning", "airflow"),
        (0x02, "application clocks", "normal", "nvidia-smi"),
    ],
)
def test_each_reason_says_what_to_think_of_it(bits, name, severity, words) -> None:
    (condition,) = after(*[(float(bits), 1.0)] * 10)
    assert (condition.name, condition.severity) == (name, severity)
    assert words in condition.sentence


def test_the_worst_comes_first_and_an_idle_gpu_is_healthy() -> None:
    both = after(*[(float(0x04 | 0x08), 1.0)] * 10)
    assert [condition.severity for condition in both] == ["fault", "normal"]
    assert after(*[(1.0, 1.0)] * 10) == ()


def test_memory_that_is_nearly_full_is_a_warning() -> None:
    (full,) = after((0.0, 960.0))
    assert (full.name, full.severity) == ("memory", "warning")
    assert after((0.0, 940.0)) == ()


def test_only_the_last_minute_counts() -> None:
    assert after(*[(8.0, 1.0)] * 100, *[(0.0, 1.0)] * 700) == ()


def test_a_clock_that_is_set_back_begins_a_new_minute() -> None:
    minute = Minute()
    for at_ms, bits in (7_200_000.0, 4.0), (3_600_000.0, 0.0), (3_600_100.0, 0.0):
        minute.append(Frame(0, at_ms, (Reading(0, "ok", (bits, 1.0)),)), [GPU])
    assert minute.conditions([GPU]) == {"gpu:1": ()}


def test_what_is_not_known_is_no_condition() -> None:
    assert after(*[(None, None)] * 10) == ()
    minute = Minute()
    minute.append(Frame(0, 0.0, (Reading(0, "lost", why="gone"),)), [GPU])
    assert minute.conditions([GPU]) == {}
    silent = msgspec.structs.replace(GPU, facts={})
    minute.append(Frame(1, 100.0, (Reading(0, "ok", (0.0, 5.0)),)), [silent])
    assert minute.conditions([silent]) == {"gpu:1": ()}


def test_the_shipped_recording_is_capped_by_power_in_its_matmul() -> None:
    recording = read_recording(SHIPPED)
    minute = Minute()
    for frame in recording.frames:
        if frame.label == "bf16 matmul":
            minute.append(frame, recording.hello.devices)
    first, second = minute.conditions(recording.hello.devices).values()
    assert [condition.name for condition in first] == ["power cap"]
    assert first[0].share_ratio > 0.7
    assert second == ()
