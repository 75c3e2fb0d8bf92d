"""Spans against figures by hand, and against what a recorded H200 was doing."""

import itertools
import math

import msgspec
import pytest

from warpbook_monitors.frames import Device, Frame, Gap, Metric, Reading
from warpbook_monitors.history.readings import Readings, read_frames, read_seconds
from warpbook_monitors.history.seconds import Seconds
from warpbook_monitors.history.span import DeviceSpan
from warpbook_monitors.history.span_statistics import device_span
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED

METRICS = (
    Metric("sm_active_ratio", "ratio", "SM"),
    Metric("memory_used_bytes", "bytes", "Memory"),
    Metric("power_watts", "watts", "Power"),
    Metric("energy_joules", "joules", "Energy"),
    Metric("clocks_event_reasons", "flags", "Reasons"),
)
#: NVML's power is that of the moment on a GPU that old
A100 = Device("gpu:a", "gpu", "A100", 0, "live", METRICS, {"compute_capability": "8.0"})
H200 = msgspec.structs.replace(A100, facts={"compute_capability": "9.0"})


def read(rows, device: Device = A100) -> Readings:
    """Frames from (time in ms, values); None is a device that did not answer."""
    messages = [
        msgspec.json.encode(
            Frame(
                seq,
                time_ms,
                (Reading(0, "stale") if values is None else Reading(0, "ok", values),),
            )
        )
        for seq, (time_ms, values) in enumerate(rows)
    ]
    messages.insert(1, msgspec.json.encode(Gap(0, 1, "not_watched", "")))
    return read_frames(messages, {0: device})[0]


def steady(power: float = 100.0, **changes):
    """Two seconds at 10 Hz; the counter is read each second."""
    names = [metric.name for metric in METRICS]
    rows = []
    for tick in range(1, 41):
        values = {
            "sm_active_ratio": 0.5,
            "memory_used_bytes": 7.0,
            "power_watts": power,
            "energy_joules": 1000.0 + power * (tick // 10),
            "clocks_event_reasons": 0.0,
            **{name: change(tick) for name, change in changes.items()},
        }
        rows.append((10_000.0 + 100 * tick, tuple(values[name] for name in names)))
    return rows


def test_a_mean_is_weighted_by_time_and_windows_end_at_their_reading() -> None:
    rows = steady(sm_active_ratio=lambda tick: 1.0 if tick <= 10 else 0.0)
    span = device_span(A100, read(rows), 10_950.0, 11_150.0)
    sm = span.metrics["sm_active_ratio"]
    # busy until 11,000: a quarter of these 200 ms
    assert sm.mean == pytest.approx(0.25)
    assert sm.covered_ratio == 1.0
    # of the window that ends at 11,000 a half is in the span: as much as needed
    assert (sm.least, sm.most) == (0.0, 1.0)


def test_a_peak_that_lies_mostly_outside_is_not_the_spans() -> None:
    rows = steady(sm_active_ratio=lambda tick: float(tick == 10))
    span = device_span(A100, read(rows), 10_970.0, 11_500.0)
    assert span.metrics["sm_active_ratio"].most == 0.0
    span = device_span(A100, read(rows), 10_900.0, 11_500.0)
    assert span.metrics["sm_active_ratio"].most == 1.0


def test_what_is_read_of_a_moment_stands_for_the_time_around_it() -> None:
    rows = steady(memory_used_bytes=lambda tick: 9.0 if tick == 10 else 1.0)
    span = device_span(A100, read(rows), 10_950.0, 11_050.0)
    assert span.metrics["memory_used_bytes"].mean == pytest.approx(9.0)


def test_where_nothing_was_read_is_no_zero() -> None:
    rows = steady()
    rows[10:20] = [(time_ms, None) for time_ms, _ in rows[10:20]]
    span = device_span(A100, read(rows), 11_000.0, 12_000.0)
    sm = span.metrics["sm_active_ratio"]
    assert (sm.mean, sm.least, sm.most, sm.covered_ratio) == (None, None, None, 0.0)
    assert span.conditions == ()
    half = device_span(A100, read(rows), 10_500.0, 11_500.0)
    assert half.metrics["sm_active_ratio"].covered_ratio == pytest.approx(0.5)
    assert half.metrics["sm_active_ratio"].mean == pytest.approx(0.5)


def test_a_hole_is_not_filled_with_the_reading_after_it() -> None:
    rows = [row for row in steady() if not 11_000 < row[0] <= 13_000]
    span = device_span(A100, read(rows), 10_000.0, 14_000.0)
    assert span.metrics["sm_active_ratio"].covered_ratio == pytest.approx(0.5, abs=0.03)


def test_flags_and_counters_have_no_mean() -> None:
    span = device_span(A100, read(steady()), 10_500.0, 11_500.0)
    assert set(span.metrics) == {"sm_active_ratio", "memory_used_bytes", "power_watts"}


def test_energy_is_the_counters_where_it_brackets_the_span() -> None:
    # the power that is told is wrong by half; the counter is right
    rows = steady(power_watts=lambda tick: 50.0)
    span = device_span(A100, read(rows), 11_000.0, 13_000.0)
    assert span.energy_basis == "counter"
    assert span.energy_joules == pytest.approx(200.0)
    # 100 ms at each end are filled in, with what the power was
    span = device_span(A100, read(rows), 10_900.0, 13_100.0)
    assert span.energy_basis == "counter"
    assert span.energy_joules == pytest.approx(210.0)
    span = device_span(A100, read(rows), 11_100.0, 12_900.0)
    assert span.energy_joules == pytest.approx(190.0)


def test_energy_of_a_short_span_is_estimated_from_the_power() -> None:
    span = device_span(A100, read(steady(power=300.0)), 11_300.0, 11_700.0)
    assert span.energy_basis == "power"
    assert span.energy_joules == pytest.approx(120.0)


def test_a_counter_that_begins_anew_is_not_used() -> None:
    rows = steady(energy_joules=lambda tick: 1000.0 if tick < 20 else float(tick // 10))
    span = device_span(A100, read(rows), 11_000.0, 13_000.0)
    assert span.energy_basis == "power"


def test_energy_is_unknown_without_counter_and_power() -> None:
    rows = steady(power_watts=lambda tick: None, energy_joules=lambda tick: None)
    span = device_span(A100, read(rows), 10_500.0, 13_500.0)
    assert (span.energy_joules, span.energy_basis) == (None, None)
    assert span.metrics["power_watts"].mean is None


def test_power_that_is_a_mean_over_a_second_is_of_the_time_before() -> None:
    # 100 W, then 500 W from 12,000 on, as a mean over the last second tells it
    rows = steady(
        power_watts=lambda tick: 100.0 + 400.0 * min(max(tick - 20, 0) / 10, 1.0),
        energy_joules=lambda tick: None,
    )
    span = device_span(H200, read(rows, H200), 11_000.0, 13_000.0)
    assert span.energy_basis == "power"
    assert span.energy_joules == pytest.approx(600.0, rel=0.05)


def test_mean_power_is_that_of_the_joules_and_no_peak_is_below_it() -> None:
    # half a second of 500 W in 100 W, as a mean over the last second tells it
    rows = steady(
        power_watts=lambda tick: 100 + 400 * max(min(tick - 20, 5, 35 - tick), 0) / 10,
        energy_joules=lambda tick: None,
    )
    span = device_span(H200, read(rows, H200), 12_000.0, 12_500.0)
    power = span.metrics["power_watts"]
    assert power.mean == pytest.approx(500.0)
    assert span.energy_joules == pytest.approx(250.0)
    assert power.least <= power.mean <= power.most


def test_conditions_have_their_share_of_the_span() -> None:
    rows = steady(clocks_event_reasons=lambda tick: 4.0 if tick <= 15 else 1.0)
    span = device_span(A100, read(rows), 11_000.0, 12_000.0)
    (condition,) = span.conditions
    assert condition.name == "power cap"
    assert condition.share_ratio == pytest.approx(0.5)
    assert "50 % of the span" in condition.sentence


def test_an_empty_history_gives_no_figures() -> None:
    nothing = read_frames([], {0: A100})[0]
    span = device_span(A100, nothing, 0.0, 1000.0)
    assert span.energy_joules is None
    assert all(metric.mean is None for metric in span.metrics.values())
    assert read_seconds([], {0: A100})[0].mean.shape == (0, len(METRICS))


@pytest.fixture(scope="module")
def phases() -> dict[str, tuple[DeviceSpan, DeviceSpan]]:
    """The first GPU of the shipped recording, by label: from frames, and seconds."""
    recording = read_recording(SHIPPED)
    devices = dict(enumerate(recording.hello.devices))
    frames = read_frames(map(msgspec.json.encode, recording.frames), devices)[0]
    seconds = Seconds(3600)
    for frame in recording.frames:
        seconds.take(frame, recording.hello.devices)
    summed = read_seconds(seconds.span(0, math.inf), devices)[0]
    spans = {}
    for label, group in itertools.groupby(
        recording.frames, key=lambda frame: frame.label
    ):
        times = [frame.time_ms for frame in group]
        span = (times[0], times[-1], frames)
        spans[str(label)] = (
            device_span(devices[0], frames, *span),
            device_span(devices[0], summed, *span),
        )
    return spans


@pytest.mark.parametrize(
    ("label", "metric", "least", "most"),
    [
        ("idle", "sm_active_ratio", 0.0, 0.01),
        ("bf16 matmul", "tensor_active_ratio", 0.85, 0.95),
        ("fp32 matmul", "tensor_active_ratio", 0.0, 0.01),
        ("fp32 matmul", "fp32_active_ratio", 0.65, 0.8),
        ("elementwise", "dram_active_ratio", 0.8, 0.9),
        ("pinned host-to-device copy", "pcie_rx_bytes_per_s", 3e10, 6e10),
        ("all-reduce", "nvlink_tx_bytes_per_s", 5e10, 5e11),
    ],
)
def test_the_recorded_work_is_told_as_what_it_was(
    phases, label, metric, least, most
) -> None:
    by_frames, by_seconds = phases[label]
    assert least <= by_frames.metrics[metric].mean <= most
    assert by_frames.metrics[metric].covered_ratio == 1.0
    # its edges lie within seconds: nearly the same
    assert by_seconds.metrics[metric].mean == pytest.approx(
        by_frames.metrics[metric].mean, rel=0.1, abs=0.01
    )


def test_the_recorded_work_has_its_energy_and_what_slowed_it(phases) -> None:
    matmul, _ = phases["bf16 matmul"]
    assert matmul.energy_basis == "counter"
    # four seconds at the power limit of 700 W
    assert 2500 < matmul.energy_joules < 2800
    (condition,) = matmul.conditions
    assert condition.name == "power cap" and condition.share_ratio > 0.9
    assert "700 W" in condition.sentence
    idle, _ = phases["idle again"]
    assert 450 < idle.energy_joules < 530
    assert idle.conditions == ()


def test_counter_and_power_agree_on_the_recorded_work(phases) -> None:
    for label, (span, _) in phases.items():
        if label == "between" or span.energy_basis != "counter":
            continue
        power = span.metrics["power_watts"]
        # the length of a phase, from what its mean power and energy are
        assert span.energy_joules / power.mean == pytest.approx(3.95, abs=0.2), label
