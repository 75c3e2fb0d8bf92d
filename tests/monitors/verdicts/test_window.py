"""A live verdict is of what the GPU does now, and of a loop as a whole."""

from __future__ import annotations

import random

import pytest

from tests.monitors.verdicts.labelled_phases import KINDS, name, named_ratio, told_kinds
from warpbook_monitors.frames import Device, Frame, Metric, Reading
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED
from warpbook_monitors.verdicts.verdict import Verdict
from warpbook_monitors.verdicts.window import Window

METRICS = (
    Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),
    Metric("sm_active_ratio", "ratio", "SM active"),
    Metric("tensor_active_ratio", "ratio", "Tensor active"),
    Metric("pcie_rx_bytes_per_s", "bytes_per_s", "PCIe in"),
)
FACTS = {"pcie_generation": 5, "pcie_width": 16}
GPU = Device("gpu:0", "gpu", "NVIDIA H200", 0, "live", METRICS, FACTS)
IDLE = (0.0, 0.0, 0.0, 0.0)
BUSY = (1.0, 0.95, 0.9, 0.0)


class Stream:
    """Ten readings a second, of which one of some is judged."""

    def __init__(self, look_every: int = 1) -> None:
        self.window = Window()
        self.time_ms = 0.0
        self.look_every = look_every

    def play(self, values: tuple[float, ...], seconds: float) -> list[Verdict]:
        judged = []
        for _ in range(round(10 * seconds)):
            self.time_ms += 100
            reading = Reading(0, "ok", values)
            self.window.append(Frame(0, self.time_ms, (reading,)), [GPU])
            if round(self.time_ms / 100) % self.look_every == 0:
                judged.append(self.window.judge([GPU])["gpu:0"])
        return judged


def test_each_phase_of_the_recording_is_named_within_a_second() -> None:
    """Measured counters of an H200; 90 % of what is told from 1 s into a phase."""
    counts = told_kinds(read_recording(SHIPPED))
    assert len(counts) == 10
    assert named_ratio(counts) >= 0.98, counts


def test_no_verdict_of_the_recording_is_of_two_kinds_of_work() -> None:
    """The last one stays, marked as changing, until the next has a whole window."""
    recording, window = read_recording(SHIPPED), Window()
    devices = recording.hello.devices
    kinds, changes = ["unknown", "idle"], set()
    for frame in recording.frames:
        window.append(frame, devices)
        verdict = window.judge(devices)[devices[0].id]
        # between two kinds of work the GPU is idle
        phase = KINDS.get(frame.label or "", "idle")
        if phase != kinds[-1]:
            kinds.append(phase)
        assert name(verdict) in kinds[-3:], (frame.label, verdict)
        if verdict.is_changing:
            changes.add((name(verdict), phase))
    for kind in set(KINDS.values()) - {"idle"}:
        assert {("idle", kind), (kind, "idle")} <= changes, kind


@pytest.mark.parametrize("busy_s", [0.4, 1.0, 1.5, 2.5])
def test_work_that_ends_soon_is_never_mixed_with_what_was_around_it(busy_s) -> None:
    stream = Stream()
    verdicts = stream.play(IDLE, 3) + stream.play(BUSY, busy_s)
    assert verdicts[30].is_changing and verdicts[30].kind == "idle"
    verdicts += stream.play(IDLE, 2) + stream.play(BUSY, 2)
    kinds = {name(verdict) for verdict in verdicts}
    assert kinds == {"unknown", "idle", "compute-bound: tensor cores"}
    assert not verdicts[-1].is_changing


def test_change_is_told_within_a_second_and_says_of_which_time() -> None:
    stream = Stream()
    assert stream.play(IDLE, 3)[-1].kind == "idle"
    verdicts = stream.play(BUSY, 1)
    assert name(verdicts[-1]) == "compute-bound: tensor cores"
    assert verdicts[-1].window_s is not None and 0.4 <= verdicts[-1].window_s <= 1
    verdicts = stream.play(IDLE, 4)
    assert verdicts[9].kind == "idle"
    assert verdicts[-1].window_s == 3
    # it is seen for longer than it is judged over, until the GPU was not read
    assert verdicts[-1].since_ms == 4100
    assert stream.play(IDLE, 5)[-1].since_ms == 4100
    stream.time_ms += 60_000
    assert stream.play(IDLE, 2)[-1].since_ms == 73_100


@pytest.mark.parametrize("look_every", [1, 3])
def test_change_to_work_that_varies_leaves_out_what_was_before(look_every: int) -> None:
    """Whoever looks seldom sees the same: the past is in the readings."""
    stream, rng = Stream(look_every), random.Random(4)
    verdicts = stream.play(IDLE, 3)
    for _ in range(9):
        active = rng.uniform(0.65, 0.95)
        verdicts += stream.play((1.0, active, active, 0.0), 0.1)
    assert name(verdicts[-1]) == "compute-bound: tensor cores"
    assert verdicts[-1].window_s is not None and verdicts[-1].window_s <= 0.9


@pytest.mark.parametrize("half_s", [0.2, 0.3, 0.5])
def test_loop_that_loads_and_computes_in_turn_is_one_thing(half_s: float) -> None:
    stream = Stream()
    kinds = []
    for _ in range(round(6 / half_s)):
        kinds += [verdict.kind for verdict in stream.play(BUSY, half_s)]
        kinds += [verdict.kind for verdict in stream.play(IDLE, half_s)]
    assert set(kinds[-40:]) == {"mixed"}


def test_slow_copies_beside_an_idle_chip_are_copies() -> None:
    """Of pageable memory, which fills a sixth of the link."""
    verdict = Stream().play((0.6, 0.0, 0.0, 10e9), 2)[-1]
    assert verdict.kind == "transfer-bound" and "pin_memory" in verdict.sentence
    verdict = Stream().play((0.6, 0.4, 0.0, 10e9), 2)[-1]
    assert verdict.kind == "mixed"
    verdict = Stream().play((0.4, 0.0, 0.0, 0.3e9), 2)[-1]
    assert verdict.kind == "host-bound"


def test_a_clock_that_is_set_back_begins_a_new_window() -> None:
    metrics = (Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),)
    gpu = Device("gpu:0", "gpu", "A GPU", 0, "live", metrics)
    window = Window()
    for begin_ms, used in (7_200_000.0, 1.0), (3_600_000.0, 0.0):
        for tick in range(10):
            reading = Reading(0, "ok", (used,))
            window.append(Frame(tick, begin_ms + 100 * tick, (reading,)), [gpu])
    assert window.judge([gpu])["gpu:0"].kind == "idle"


@pytest.mark.parametrize("step_ms", [1000, 5000])
def test_a_gpu_that_is_read_too_seldom_is_not_judged_and_told_so(step_ms) -> None:
    metrics = (Metric("gpu_utilization_ratio", "ratio", "GPU utilization (NVML)"),)
    gpu = Device("gpu:0", "gpu", "A GPU", 0, "live", metrics)
    window = Window()

    def verdict_at(time_ms: float) -> Verdict:
        window.append(Frame(0, time_ms, (Reading(0, "ok", (0.0,)),)), [gpu])
        return window.judge([gpu])["gpu:0"]

    assert verdict_at(0.0).sentence == "Too few readings to judge."
    for number in range(1, 10):
        seldom = verdict_at(step_ms * number)
    assert (seldom.kind, seldom.sentence) == ("unknown", "Sampled too rarely to judge.")
    assert f"every {step_ms / 1000:.1f} s" in seldom.rule
    # a rest is no slow pace, and at a good pace it is judged again
    begin_ms = step_ms * 9 + 3_600_000
    paced = [verdict_at(begin_ms + 100 * tick) for tick in range(5)]
    assert [verdict.kind for verdict in paced] == ["unknown"] * 4 + ["idle"]
    assert paced[2].sentence == "Too few readings to judge."
