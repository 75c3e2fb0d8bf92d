"""Joules of a span, from power as NVML tells it: a mean over the second before."""

import itertools

import numpy as np
import pytest

from warpbook_monitors.frames import Device, Metric
from warpbook_monitors.history.energy import Power, energy
from warpbook_monitors.history.readings import Readings, read_frames
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED

POWER = Metric("power_watts", "watts", "Power")
H200 = Device(
    "gpu:a", "gpu", "H200", 0, "live", (POWER,), {"compute_capability": "9.0"}
)
IDLE, BUSY = 120.0, 720.0


def spent_joules(steps, until_ms):
    """What was spent until a time, by power that changes in steps of (ms, watts)."""
    total = steps[0][1] * min(until_ms, steps[0][0]) / 1000
    for (begin_ms, watts), (end_ms, _) in itertools.pairwise((*steps, (1e9, 0.0))):
        total += watts * max(min(until_ms, end_ms) - begin_ms, 0.0) / 1000
    return total


def read(steps, times_ms) -> Readings:
    """What NVML's power is at these times: the mean over the second before each."""
    ends = np.array(times_ms, dtype=float)
    watts = [spent_joules(steps, t) - spent_joules(steps, t - 1000) for t in times_ms]
    table = np.array(watts)[:, None]
    periods = np.diff(ends, prepend=2 * ends[0] - ends[1])
    reasons = np.full((len(ends), 0), np.nan)
    return Readings(ends - periods, ends, table, table, table, reasons)


def ticks(period_ms=100.0, until_ms=9000.0, begin_ms=1000.0):
    return np.arange(begin_ms, until_ms + 1, period_ms)


def cell(begin_ms, end_ms):
    """An idle GPU on which one cell runs."""
    return [(0.0, IDLE), (begin_ms, BUSY), (end_ms, IDLE)]


def joules(readings, from_ms, to_ms, device=H200):
    energy_joules, basis = energy(
        device, Power(device, readings), readings, from_ms, to_ms
    )
    assert basis == (None if energy_joules is None else "power")
    return energy_joules


@pytest.mark.parametrize("wall_ms", [100, 200, 500, 900, 1000, 1100, 2000, 2700, 5000])
def test_a_cell_on_an_idle_gpu_has_its_joules_exactly(wall_ms) -> None:
    steps = cell(3000.0, 3000.0 + wall_ms)
    readings = read(steps, ticks())
    assert joules(readings, 3000.0, 3000.0 + wall_ms) == pytest.approx(
        BUSY * wall_ms / 1000
    )


def test_whole_seconds_are_exact_however_the_power_changed() -> None:
    steps = [(0.0, IDLE), (2300.0, BUSY), (2600.0, 300.0), (3400.0, 650.0)]
    readings = read(steps, ticks())
    for from_ms, to_ms in ((3000.0, 4000.0), (2500.0, 5500.0), (2400.0, 4400.0)):
        true = spent_joules(steps, to_ms) - spent_joules(steps, from_ms)
        assert joules(readings, from_ms, to_ms) == pytest.approx(true)


@pytest.mark.parametrize("late_ms", [10, 30, 50, 70, 90])
@pytest.mark.parametrize("wall_ms", [300, 1000, 1450])
def test_between_two_readings_an_edge_costs_a_quarter_of_their_distance(
    late_ms, wall_ms
) -> None:
    begin_ms = 3000.0 + late_ms
    end_ms = begin_ms + wall_ms
    readings = read(cell(begin_ms, end_ms), ticks())
    true = BUSY * wall_ms / 1000
    lost = (BUSY - IDLE) * 0.025
    assert true - 2 * lost - 1e-6 <= joules(readings, begin_ms, end_ms) <= true + 1e-6


def test_two_cells_in_a_row_share_the_energy_of_both() -> None:
    steps = [(0.0, IDLE), (3000.0, BUSY), (4000.0, 400.0), (5500.0, IDLE)]
    readings = read(steps, ticks())
    first, second = joules(readings, 3000, 4000), joules(readings, 4000, 5500)
    assert first == pytest.approx(720.0)
    assert second == pytest.approx(600.0)


@pytest.mark.parametrize("wall_ms", [100, 400, 1300])
@pytest.mark.parametrize("after_ms", [0, 300, 900, 1500])
def test_what_ran_shortly_before_a_span_is_not_the_spans(after_ms, wall_ms) -> None:
    begin_ms = 5000.0 + after_ms
    end_ms = begin_ms + wall_ms
    steps = [(0.0, IDLE), (4300.0, BUSY), (5000.0, IDLE), (begin_ms, 400.0)]
    readings = read([*steps, (end_ms, IDLE)], ticks())
    energy_joules = joules(readings, begin_ms, end_ms)
    assert energy_joules == pytest.approx(400.0 * wall_ms / 1000)


@pytest.mark.parametrize("begin_ms", [2900.0, 2400.0, 1900.0])
def test_where_less_was_read_before_a_span_it_is_still_told(begin_ms) -> None:
    # of an idle GPU nothing is missing, however little was read of it
    readings = read(cell(3000.0, 3700.0), ticks(begin_ms=begin_ms))
    assert joules(readings, 3000.0, 3700.0) == pytest.approx(BUSY * 0.7)


def test_a_span_that_runs_into_what_is_not_read_yet_falls_back_on_the_average() -> None:
    steps = cell(3000.0, 6000.0)
    readings = read(steps, ticks(until_ms=4900.0))
    # the newest reading is missing: less exact, and an estimate as before
    assert 0.75 * 1440 < joules(readings, 3000.0, 5000.0) <= 1440
    # and nothing is told of what was mostly not read
    assert joules(read(steps, ticks(until_ms=3900.0)), 3000.0, 4000.0) is None


def test_a_hole_or_a_slow_pace_falls_back_on_the_average() -> None:
    steps = [(0.0, BUSY)]
    holed = [t for t in ticks() if not 3500 < t < 4300]
    assert joules(read(steps, holed), 3000.0, 4000.0) == pytest.approx(BUSY)
    slow = read(steps, ticks(period_ms=1000.0))
    assert joules(slow, 3000.0, 5000.0) == pytest.approx(2 * BUSY)


def test_a_clock_that_was_set_back_invents_no_energy() -> None:
    times = np.concatenate((ticks(until_ms=4000.0), ticks(begin_ms=2000.0)))
    readings = read([(0.0, BUSY)], times)
    assert joules(readings, 3000.0, 4000.0) == pytest.approx(BUSY)


def test_power_of_the_moment_is_added_up_as_it_is() -> None:
    a100 = Device(
        "gpu:a", "gpu", "A100", 0, "live", (POWER,), {"compute_capability": "8.0"}
    )
    readings = read([(0.0, IDLE), (3000.0, BUSY)], ticks())
    # each reading is of its own time: the ramp is taken for the truth
    assert joules(readings, 3000.0, 4000.0, a100) == pytest.approx(
        (IDLE + BUSY) / 2, rel=0.01
    )


def test_no_power_is_no_energy() -> None:
    nothing = read_frames([], {0: H200})[0]
    assert joules(nothing, 0.0, 1000.0) is None


@pytest.mark.parametrize("gpu", [0, 1])
def test_seconds_of_real_h200s_agree_with_their_counters(gpu) -> None:
    recording = read_recording(SHIPPED)
    device = recording.hello.devices[gpu]
    names = [metric.name for metric in device.metrics]
    power, counter = names.index("power_watts"), names.index("energy_joules")
    rows = [
        (frame.time_ms, reading.values[power], reading.values[counter])
        for frame in recording.frames
        for reading in frame.readings
        if reading.device == gpu and reading.state == "ok"
    ]
    times, watts, counted = map(np.array, zip(*rows, strict=True))
    table = watts[:, None]
    reasons = np.full((len(times), 0), np.nan)
    readings = Readings(times - 100, times, table, table, table, reasons)
    only_power = Device("gpu", "gpu", "", 0, "live", (POWER,), device.facts)
    renewed = np.flatnonzero(np.diff(counted)) + 1
    spent, errors = [], []
    for one, two in itertools.pairwise(renewed[1:]):
        spent.append(counted[two] - counted[one])
        energy_joules = joules(readings, times[one], times[two], only_power)
        errors.append(energy_joules - spent[-1])
    assert len(spent) > 40
    # work begins and ends in them; a mean of half a second later was 100 J off
    assert max(map(abs, errors)) < 0.06 * 720
    assert abs(sum(errors)) < 0.005 * sum(spent)
