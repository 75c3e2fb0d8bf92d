"""Where memory is heading: a trend only where there is one."""

from __future__ import annotations

import random

import msgspec
import pytest

from warpbook_monitors import metrics
from warpbook_monitors.frames import Device, Frame, Reading
from warpbook_monitors.memory.outlook import MemoryOutlook, MemoryTrends, outlook

GIB = 2**30
TOTAL = 140 * GIB


def of(*used_gib: float, period_s: float = 2.0) -> MemoryOutlook:
    points = [
        (1e12 + at * period_s * 1e3, used * GIB) for at, used in enumerate(used_gib)
    ]
    return outlook(points, TOTAL, TOTAL)


def test_steady_growth_is_told_with_the_time_to_full() -> None:
    trend = of(*(40 + at for at in range(31)))
    assert trend.slope_bytes_per_s == pytest.approx(GIB / 2)
    assert trend.full_in_s == pytest.approx(140)
    assert trend.sentence == (
        "70.0 GiB of 140 GiB used; it grows by 30.0 GiB a minute, "
        "full in 2 min at this rate."
    )


def test_noise_on_top_of_growth_changes_little() -> None:
    noise = random.Random(1)
    trend = of(*(40 + at / 2 + noise.uniform(-0.5, 0.5) for at in range(31)))
    assert trend.slope_bytes_per_s == pytest.approx(GIB / 4, rel=0.1)


@pytest.mark.parametrize(
    "used",
    [
        [40.0] * 31,
        # a model was loaded
        [2.0] * 15 + [60.0] * 16,
        [2.0] * 28 + [60.0] * 3,
        # a context came and went
        [40.0, 40.4] * 15,
        # it grew, and has stopped
        [40.0 + min(at, 16) for at in range(31)],
        # each step of a training allocates and frees
        [40.0, 60.0, 80.0] * 10,
        # a few MiB
        [40 + at / 4096 for at in range(31)],
    ],
)
def test_what_is_no_trend_is_not_told_as_one(used: list[float]) -> None:
    trend = of(*used)
    assert (trend.slope_bytes_per_s, trend.full_in_s) == (None, None)
    assert trend.sentence.endswith("; no trend.")


def test_a_short_look_tells_no_trend() -> None:
    trend = of(40, 50, 60)
    assert trend.full_in_s is None
    assert "not watched long enough" in trend.sentence


def test_memory_that_falls_is_never_full() -> None:
    trend = of(*(100 - at for at in range(31)))
    assert trend.slope_bytes_per_s == pytest.approx(-GIB / 2)
    assert trend.full_in_s is None
    assert "falls by 30.0 GiB a minute" in trend.sentence


def test_a_forecast_of_hours_is_left_out() -> None:
    trend = of(*(40 + at / 200 for at in range(31)))
    assert trend.slope_bytes_per_s is not None
    assert trend.full_in_s is None


def test_what_the_driver_reserves_can_not_be_filled() -> None:
    points = [(1e12 + at * 2e3, at * GIB) for at in range(31)]
    trend = outlook(points, TOTAL, TOTAL - 10 * GIB)
    assert trend.full_in_s == pytest.approx(200)


GPU = Device(
    id="gpu:1",
    kind="gpu",
    name="GPU",
    index=0,
    origin="live",
    metrics=(metrics.NVML["memory_used_bytes"].on_device(),),
    facts={"memory_total_bytes": TOTAL},
)


class Watched:
    """A stream of frames at 10 Hz."""

    def __init__(self) -> None:
        self.trends = MemoryTrends()
        self.now_ms = 1e12

    def see(self, seconds: float, *readings: Reading) -> MemoryOutlook | None:
        for _ in range(round(seconds * 10)):
            self.trends.take(Frame(0, self.now_ms, readings), [GPU])
            self.now_ms += 100
        return self.trends.outlooks([GPU], self.now_ms).get("gpu:1")


def test_frames_become_an_outlook() -> None:
    watched = Watched()
    for step in range(60):
        trend = watched.see(1, Reading(0, "ok", (float((40 + step) * GIB),)))
    assert trend is not None
    assert trend.slope_bytes_per_s == pytest.approx(GIB, rel=0.01)


def test_what_the_driver_keeps_for_itself_is_never_filled() -> None:
    gpu = msgspec.structs.replace(
        GPU,
        metrics=tuple(
            metrics.NVML[name].on_device()
            for name in ("memory_used_bytes", "memory_free_bytes")
        ),
    )
    trends = MemoryTrends()
    usable = TOTAL - 40 * GIB
    for second in range(60):
        used = second * GIB
        reading = Reading(0, "ok", (float(used), float(usable - used)))
        trends.take(Frame(0, 1e12 + 1000 * second, (reading,)), [gpu])
    trend = trends.outlooks([gpu], 1e12 + 59_000)["gpu:1"]
    # the last point is of second 58
    assert trend.full_in_s == pytest.approx(100 - 58)


@pytest.mark.parametrize(
    "reading", [Reading(0, "lost", why="gone"), Reading(0, "ok", (None,))]
)
def test_without_readings_nothing_is_told(reading: Reading) -> None:
    watched = Watched()
    assert watched.see(4, Reading(0, "ok", (1.0 * GIB,))) is not None
    assert watched.see(10, reading) is None


def test_a_trend_does_not_span_a_time_without_readings() -> None:
    watched = Watched()
    watched.see(30, Reading(0, "ok", (1.0 * GIB,)))
    watched.now_ms += 600_000
    trend = watched.see(4, Reading(0, "ok", (100.0 * GIB,)))
    assert trend is not None
    assert trend.slope_bytes_per_s is None
    watched.now_ms -= 7_200_000  # the clock was set back
    assert watched.see(4, Reading(0, "ok", (50.0 * GIB,))) is not None
