"""The alert rules on generated seconds and on the shipped recording."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from tests.monitors.alerts.alert_machine import FACTS, Machine, gpu, hot
from warpbook_monitors.alerts.engine import KEPT_MS, Engine
from warpbook_monitors.alerts.rules import Rules
from warpbook_monitors.alerts.situation import Counters, Situation, Trouble, look_at
from warpbook_monitors.frames import Event, Frame
from warpbook_monitors.memory.holders import DeviceHolders, Holder
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED

GIB = 1 << 30


def test_what_does_not_last_is_no_alert() -> None:
    machine = Machine()
    assert machine.seconds(5, hot(95)) == ()
    machine.second(hot(40))
    assert machine.seconds(5, hot(95)) == ()
    assert machine.changes == 0


def test_an_alert_keeps_its_id_and_its_beginning_until_it_has_ended() -> None:
    machine = Machine()
    begin_ms = machine.now_ms + 1000
    (alert,) = machine.seconds(6, hot(95))
    assert (alert.rule, alert.device, alert.since_ms) == (
        "temperature",
        "gpu:0",
        begin_ms,
    )
    assert alert.title == "GPU 0 is hot"
    # hotter is no other alert; between the two thresholds nothing changes
    assert machine.seconds(20, hot(97)) == (alert,)
    assert machine.seconds(60, hot(84)) == (alert,)
    assert machine.changes == 1
    over_ms = machine.now_ms + 1000
    assert machine.seconds(15, hot(60)) == (alert,)
    assert machine.second(hot(60)) == ()
    (ended,) = machine.ended
    assert (ended.id, ended.until_ms) == (alert.id, over_ms)
    # the next time is another alert
    (again,) = machine.seconds(6, hot(95))
    assert again.id != alert.id
    assert machine.engine.alerts == (again, ended)


def test_an_ended_alert_is_told_for_a_quarter_of_an_hour() -> None:
    machine = Machine()
    machine.seconds(6, hot(95))
    machine.seconds(16, hot(60))
    (ended,) = machine.ended
    machine.now_ms = ended.until_ms + KEPT_MS - 2000
    machine.second(hot(60))
    assert machine.ended == (ended,)
    machine.second(hot(60))
    assert machine.engine.alerts == ()


def test_a_clock_that_is_set_makes_nothing_last_or_end() -> None:
    machine = Machine()
    machine.seconds(6, hot(95))
    machine.seconds(16, hot(60))
    (ended,) = machine.ended
    machine.seconds(3, hot(95))
    years_ms = 10 * 365 * 86_400_000.0
    for set_ms in (years_ms, -2 * years_ms):
        machine.engine.follow_clock(set_ms)
        machine.now_ms += set_ms
        # three and less than five seconds: it did not last for years
        assert machine.second(hot(95)) == ()
        assert machine.ended == (ended,)
    (alert,) = machine.second(hot(95))
    machine.engine.follow_clock(years_ms)
    machine.now_ms += years_ms
    assert machine.seconds(15, hot(60)) == (alert,)
    assert machine.second(hot(60)) == ()


def test_what_comes_and_goes_within_seconds_is_one_alert() -> None:
    machine = Machine()
    (alert,) = machine.seconds(6, hot(95))
    for _ in range(20):
        machine.seconds(10, hot(60))
        assert machine.second(hot(95)) == (alert,)
    assert machine.changes == 1


def test_what_can_not_be_read_neither_begins_nor_ends_an_alert() -> None:
    machine = Machine()
    machine.seconds(4, hot(95))
    assert machine.seconds(9, {}) == ()
    (alert,) = machine.seconds(2, hot(95))
    assert machine.seconds(60, None) == (alert,)
    assert machine.second(hot(60)) == (alert,)
    # what nobody has seen for long is not said to hold for ever
    machine.second(hot(95))
    machine.seconds(901, None)
    assert machine.holding == ()
    # and what was pending before a long blindness begins anew
    machine.seconds(4, hot(95))
    machine.seconds(30, None)
    assert machine.seconds(5, hot(95)) == ()


def test_what_lasted_before_nobody_watched_begins_anew() -> None:
    machine = Machine()
    machine.second(hot(95))
    machine.now_ms += 3_600_000
    assert machine.seconds(5, hot(95)) == ()
    (alert,) = machine.second(hot(95))
    assert alert.since_ms == machine.now_ms - 5000
    # nor is it said of an alert that it held all night
    machine.now_ms += 8 * 3_600_000
    machine.seconds(6, hot(95))
    (again,) = machine.holding
    assert again.id != alert.id
    assert again.since_ms == machine.now_ms - 5000


def test_a_clock_that_is_put_back_holds_nothing_up() -> None:
    machine = Machine()
    machine.seconds(3, hot(95))
    machine.now_ms -= 3_600_000
    machine.seconds(6, hot(95))
    (alert,) = machine.holding
    machine.now_ms -= 3_600_000
    machine.seconds(17, hot(50))
    assert machine.holding == ()
    assert alert.id == machine.ended[0].id


@pytest.mark.parametrize(
    ("facts", "celsius", "is_hot"),
    [
        ({}, 86.9, False),
        ({}, 87, True),
        ({"temperature_slowdown_celsius": 80}, 77, True),
        ({"temperature_slowdown_celsius": None}, 86, False),
        ({"temperature_slowdown_celsius": None}, 87, True),
    ],
)
def test_hot_is_near_the_slowdown_threshold(facts, celsius, is_hot) -> None:
    machine = Machine(gpu(**facts))
    assert bool(machine.seconds(10, hot(celsius))) == is_hot


def test_a_power_cap_is_no_alert_and_heat_is() -> None:
    machine = Machine()
    assert machine.seconds(60, {"clocks_event_reasons": 0x04 | 0x01 | 0x02}) == ()
    alerts = machine.seconds(11, {"clocks_event_reasons": 0x04 | 0x40 | 0x20})
    assert {(a.title, a.severity) for a in alerts} == {
        ("GPU 0: hardware thermal slowdown", "fault"),
        ("GPU 0: thermal slowdown", "warning"),
    }


def test_memory_is_full_until_there_is_room_again() -> None:
    machine = Machine(gpu(0), gpu(1))
    full, most, half = ({"memory_used_bytes": n} for n in (96, 93, 50))
    (alert,) = machine.seconds(6, full, half)
    assert (alert.rule, alert.device) == ("memory_full", "gpu:0")
    assert machine.seconds(30, most, half) == (alert,)
    assert machine.seconds(16, half, half) == ()


def test_two_equal_instances_of_a_gpu_are_told_apart() -> None:
    split = gpu(3)
    parts = [
        msgspec.structs.replace(
            split,
            id=f"mig:{number}",
            kind="mig",
            name="NVIDIA H200 MIG 1g.18gb",
            index=None,
            facts={**FACTS, "parent": split.id, "gpu_instance_id": number},
        )
        for number in (7, 8)
    ]
    full = {"memory_used_bytes": 99}
    alerts = Machine(split, *parts).seconds(6, {}, full, full)
    assert {alert.title for alert in alerts} == {
        "MIG 3:7: memory is almost full",
        "MIG 3:8: memory is almost full",
    }


def test_each_gpu_that_is_lost_or_silent_is_told() -> None:
    machine = Machine(gpu(0), gpu(1))
    (alert,) = machine.seconds(3, "lost", {})
    assert (alert.title, alert.severity) == ("GPU 0 is lost", "fault")
    alerts = machine.seconds(31, "lost", "stale")
    assert {(a.rule, a.device) for a in alerts} == {
        ("gpu_lost", "gpu:0"),
        ("gpu_stale", "gpu:1"),
    }
    assert machine.seconds(16, {}, {}) == ()


def xid(code: int, severity="fault", device="gpu:0") -> Event:
    return Event(1, device, "xid", code, severity, "Bad", "It means this.", "Do that.")


def test_an_xid_holds_for_five_minutes_after_the_last_one() -> None:
    machine = Machine()
    (alert,) = machine.second({}, events=(xid(79), xid(43, "normal")))
    assert alert.title == "GPU 0, XID 79: Bad"
    assert alert.text == "It means this. Do that."
    assert machine.seconds(200, {}) == (alert,)
    assert machine.second({}, events=(xid(79),)) == (alert,)
    assert machine.seconds(300, {}) == (alert,)
    assert machine.second({}) == ()
    assert len(machine.second({}, events=(xid(31), xid(48)))) == 2


def test_uncorrectable_errors_are_told_when_they_come_not_for_the_past() -> None:
    machine = Machine()
    assert machine.seconds(5, {"ecc_uncorrected_count": 3}) == ()
    (alert,) = machine.second({"ecc_uncorrected_count": 4})
    assert (alert.rule, alert.severity) == ("ecc_uncorrected", "fault")
    # a GPU that was reset counts from 0; an hour later it is history
    assert machine.seconds(16, {"ecc_uncorrected_count": 0}) == ()
    (alert,) = machine.second({"remapped_rows_failed": 1})
    assert alert.title == "GPU 0: faulty memory can't be replaced"


def test_an_error_that_is_told_and_then_counted_is_one_alert() -> None:
    machine = Machine()
    machine.seconds(5, {"ecc_uncorrected_count": 3})
    event = Event(1, "gpu:0", "ecc_double_bit", None, "fault", "Bad", "", "")
    (alert,) = machine.second({"ecc_uncorrected_count": 3}, events=(event,))
    # NVML's counters are read every ten seconds
    machine.seconds(9, {"ecc_uncorrected_count": 3})
    assert machine.seconds(60, {"ecc_uncorrected_count": 4}) == (alert,)
    assert machine.changes == 1


def test_corrected_errors_are_told_when_they_are_a_burst() -> None:
    machine = Machine()
    for count in range(0, 490, 1):
        # less than 50 in ten minutes
        machine.now_ms += 12_000
        assert machine.second({"ecc_corrected_count": count}) == ()
    (alert,) = machine.second({"ecc_corrected_count": 550})
    assert (alert.rule, alert.severity) == ("ecc_corrected", "warning")
    alerts = machine.second({"ecc_corrected_count": 550, "remapped_rows_pending": 1})
    assert len(alerts) == 2


def held(state: str, idle_s: float | None, used_bytes: int = 10 * GIB) -> DeviceHolders:
    kernel = Holder("kernel", "a/b.ipynb", used_bytes, (7,), "k1", None, state, idle_s)
    program = Holder("program", "python", 50 * GIB)
    return DeviceHolders((program, kernel), 0)


IDLE = {"sm_active_ratio": 0.0, "gpu_utilization_ratio": 0.0}
BUSY = {"sm_active_ratio": 0.0, "gpu_utilization_ratio": 1.0}


def test_a_gpu_that_idles_while_a_cell_runs_is_told_after_a_minute() -> None:
    machine = Machine()
    holders = {"gpu:0": held("busy", None)}
    assert machine.seconds(60, IDLE, holders=holders) == ()
    (alert,) = machine.second(IDLE, holders=holders)
    assert (alert.rule, alert.kernel_id) == ("idle_while_busy", "k1")
    assert "a/b.ipynb" in alert.text
    # copies are work too
    assert machine.seconds(16, BUSY, holders=holders) == ()


def test_a_kernel_that_works_on_one_of_its_gpus_is_not_idle() -> None:
    machine = Machine(gpu(0), gpu(1))
    holders = {"gpu:0": held("busy", None), "gpu:1": held("busy", None)}
    assert machine.seconds(120, IDLE, BUSY, holders=holders) == ()
    (alert,) = machine.seconds(61, IDLE, IDLE, holders=holders)
    assert alert.title == "GPU 0 and GPU 1 idle while a cell runs"


@pytest.mark.parametrize(
    ("holder", "row", "told"),
    [
        (held("idle", 1800), IDLE, "30 min"),
        (held("idle", 141_000), IDLE, "39 h"),
        (held("idle", 1700), IDLE, ""),
        (held("busy", None), IDLE, ""),
        (held("idle", 9000), BUSY, ""),
        (held("idle", 9000), {}, ""),
        (held("idle", 9000, 500 << 20), IDLE, ""),
    ],
)
def test_memory_that_a_kernel_holds_for_nothing_is_told(holder, row, told) -> None:
    alerts = Machine().seconds(12, row, holders={"gpu:0": holder})
    assert [alert.rule for alert in alerts] == ["held_idle"] * bool(told)
    if told:
        assert f"holds 10.0 GiB and has run nothing for {told}" in alerts[0].text


def test_the_monitors_own_trouble_is_told() -> None:
    machine = Machine()
    trouble = Trouble("silence", "The monitor gives no readings", "See the log.")
    (alert,) = machine.seconds(6, {}, troubles=(trouble,))
    assert (alert.rule, alert.title, alert.device) == ("monitor", trouble.title, None)
    machine.seconds(6, {})
    assert machine.holding == ()


def test_names_of_others_are_made_readable_and_short() -> None:
    machine = Machine()
    name = "\x1b[31m" + "x" * 5000 + "\n"
    kernel = Holder("kernel", name, 9 * GIB, (), "k", None, "idle", 1e5)
    holders = {"gpu:0": DeviceHolders((kernel,), None)}
    (alert,) = machine.seconds(11, IDLE, holders=holders)
    assert alert.text.isprintable()
    assert len(alert.text) <= 600


def test_a_recording_raises_no_alert() -> None:
    machine = Machine(gpu(origin="replay"))
    assert machine.seconds(20, hot(99)) == ()


def test_healthy_work_on_a_real_h200_raises_no_alert() -> None:
    recording = read_recording(SHIPPED)
    rules, engine, counters = Rules(), Engine(), Counters()
    for second in _seconds(recording.frames):
        seen = look_at(recording.hello.devices, second)
        assert any(frame.readings for frame in seen)
        now_ms = second[-1].time_ms
        counters.follow(now_ms, seen)
        engine.judge(rules, Situation(now_ms, seen, counters=counters))
    assert engine.alerts == ()


def _seconds(frames) -> Iterator[list[Frame]]:
    for start in range(0, len(frames), 10):
        yield list(frames[start : start + 10])
