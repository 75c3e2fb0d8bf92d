"""Whether a GPU was left alone: told in words, with the real pynvml on a stub."""

import os
import time
from collections.abc import Callable, Sequence

import pytest

from tests.stub_nvml import (
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    StubNvml,
)
from warpbook_labs.gpu import quiet
from warpbook_labs.gpu.quiet import Timed, TooBusy, Watch, when_quiet
from warpbook_labs.results.measurements import Conditions
from warpbook_monitors.nvml.gate import call

MakeStub = Callable[..., StubNvml]
OWN = 4_000_001
OTHER = 4_000_002
PROCESS_CALL = "nvmlDeviceGetProcessUtilization"
READ = (PROCESS_CALL, "nvmlDeviceGetClockInfo")


@pytest.fixture
def stub(make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch) -> StubNvml:
    made = make_stub_nvml("h200")
    made.no_delays()
    made.set(0, utilization_percent=0, sm_clock_mhz=1980, clocks_event_reasons=1)
    made.work(0, (OWN, 60))
    # this one may be in a container or not
    monkeypatch.setattr(quiet, "has_own_pids", lambda: False)
    monkeypatch.setattr(quiet, "_SETTLE_S", 0.1)
    monkeypatch.setattr(quiet, "_PROCESS_PERIOD_S", 0.0)
    monkeypatch.setattr(quiet, "_LATE_S", 5.0)
    return made


def uuid() -> str:
    return str(call("nvmlDeviceGetUUID", call("nvmlDeviceGetHandleByIndex", 0)))


def read_some(
    stub: StubNvml, most_s: float = 120.0, calls: Sequence[str] = READ
) -> None:
    """Wait until everything was read twice more, or for long if it never is."""
    wanted = {function_name: stub.calls(function_name) + 3 for function_name in calls}
    until_s = time.monotonic() + most_s
    while time.monotonic() < until_s:
        if all(
            stub.calls(function_name) >= count
            for function_name, count in wanted.items()
        ):
            return
        time.sleep(0.005)


def watched(
    stub: StubNvml,
    meanwhile: Callable[[], object] = lambda: None,
    most_s: float = 120.0,
    calls: Sequence[str] = READ,
) -> Conditions:
    """Watch, and let something happen in the middle."""
    with Watch(uuid()) as watch:
        since_ns = time.monotonic_ns()
        read_some(stub, most_s, calls)
        meanwhile()
        read_some(stub, most_s, calls)
        return watch.over(since_ns, time.monotonic_ns(), {OWN})


def measured(stub: StubNvml, calls: Sequence[str] = READ) -> Timed[str]:
    since_ns = time.monotonic_ns()
    read_some(stub, calls=calls)
    return Timed("measured", since_ns, time.monotonic_ns())


def test_a_quiet_gpu_is_quiet(stub: StubNvml) -> None:
    stub.set(0, temperature_celsius=61)
    conditions = watched(stub)
    assert conditions == Conditions("", (1980, 1980), 61.0, (), ())


def test_processes_that_work_for_one_measurement_do_not_disturb_it(
    stub: StubNvml,
) -> None:
    stub.work(0, (OWN, 60), (OTHER, 40))
    with Watch(uuid()) as watch:
        since_ns = time.monotonic_ns()
        read_some(stub)
        read_some(stub)
        until_ns = time.monotonic_ns()
        assert watch.over(since_ns, until_ns, {OWN, OTHER}).disturbed == ""
        assert watch.is_alone(since_ns, until_ns, {OWN, OTHER})
        assert not watch.is_alone(since_ns, until_ns, {OWN})


def test_another_process_that_works_is_named(stub: StubNvml) -> None:
    conditions = watched(stub, lambda: stub.work(0, (OWN, 60), (os.getpid(), 35)))
    assert f"(process {os.getpid()}) used the GPU at the same time (35 %)" in (
        conditions.disturbed
    )


def test_one_that_only_holds_memory_disturbs_nobody(stub: StubNvml) -> None:
    assert watched(stub, lambda: stub.work(0, (OWN, 60), (OTHER, 0))).disturbed == ""


def test_one_that_ended_before_disturbed_nobody(stub: StubNvml) -> None:
    with Watch(uuid()) as watch:
        stub.work(0, (OTHER, 90))
        read_some(stub)
        stub.work(0, (OWN, 60))
        read_some(stub)
        since_ns = time.monotonic_ns()
        read_some(stub)
        until_ns = time.monotonic_ns()
        assert watch.is_alone(since_ns, until_ns, {OWN})
        assert watch.over(since_ns, until_ns, {OWN}).disturbed == ""


def test_in_a_container_a_second_one_that_works_is_another(
    stub: StubNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "has_own_pids", lambda: True)
    stub.work(0, (70_000, 60))
    assert watched(stub).disturbed == ""
    two = watched(stub, lambda: stub.work(0, (70_000, 60), (70_001, 5)))
    assert two.disturbed == "Another program used the GPU at the same time."


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (0x08, "hardware slowdown"),
        (0x20, "thermal slowdown"),
        (0x40, "hardware thermal slowdown"),
        (0x80, "power brake"),
    ],
)
def test_clocks_that_are_lowered_disturb(stub: StubNvml, bit: int, name: str) -> None:
    conditions = watched(stub, lambda: stub.set(0, clocks_event_reasons=bit))
    assert f"The GPU's clocks were lowered ({name}): " in conditions.disturbed
    assert conditions.reasons == (name,)


def test_a_power_cap_alone_is_only_told(stub: StubNvml) -> None:
    conditions = watched(stub, lambda: stub.set(0, clocks_event_reasons=0x04))
    assert (conditions.disturbed, conditions.reasons) == ("", ("power cap",))


def test_a_clock_that_moves_disturbs(stub: StubNvml) -> None:
    conditions = watched(stub, lambda: stub.set(0, sm_clock_mhz=1900))
    assert conditions.disturbed == "The GPU's clock moved between 1900 and 1980 MHz."
    assert conditions.sm_clock_mhz == (1900, 1980)


def test_a_clock_that_hardly_moves_does_not(stub: StubNvml) -> None:
    assert watched(stub, lambda: stub.set(0, sm_clock_mhz=1935)).disturbed == ""


def test_numbers_without_sense_are_no_readings(stub: StubNvml) -> None:
    def lie() -> None:
        stub.set(0, sm_clock_mhz=2.0**32 - 1, temperature_celsius=60_000)
        stub.work(0, (OWN, 60), (OTHER, 2**32 - 1), (0, 50), (2**32 - 1, 50))

    assert watched(stub, lie).disturbed == ""
    stub.set(0, sm_clock_mhz=0)
    conditions = watched(stub)
    assert conditions.sm_clock_mhz is None
    assert conditions.temperature_celsius is None
    assert "NVML does not tell the clock" in conditions.unknown[0]


@pytest.mark.parametrize("code", [NOT_SUPPORTED, NO_PERMISSION, UNKNOWN])
@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("nvmlDeviceGetClockInfo", "the clock"),
        (PROCESS_CALL, "which process works"),
    ],
)
def test_what_nvml_does_not_tell_is_said_and_no_disturbance(
    stub: StubNvml, function: str, says: str, code: int
) -> None:
    stub.fault(function, rc=code)
    conditions = watched(stub, calls=[name for name in READ if name != function])
    assert conditions.disturbed == ""
    assert [says in words for words in conditions.unknown] == [True]


def test_an_older_driver_names_the_reasons_otherwise(stub: StubNvml) -> None:
    stub.fault("nvmlDeviceGetCurrentClocksEventReasons", rc=NOT_SUPPORTED)
    stub.set(0, clocks_event_reasons=0x40)
    assert watched(stub).reasons == ("hardware thermal slowdown",)


def test_a_gpu_that_is_lost_disturbs(stub: StubNvml) -> None:
    conditions = watched(stub, lambda: stub.set(0, rc=LOST), most_s=0.3)
    assert "does not answer" in conditions.disturbed


def test_a_library_that_hangs_is_said(stub: StubNvml) -> None:
    uuid_of_it = uuid()
    stub.fault("nvmlDeviceGetClockInfo", delay_ms=60_000)
    with Watch(uuid_of_it) as watch:
        since_ns = time.monotonic_ns()
        time.sleep(0.1)
        conditions = watch.over(since_ns, time.monotonic_ns(), {OWN})
        stub.fault("nvmlDeviceGetClockInfo")
    assert conditions.disturbed == ""
    assert conditions.unknown == ("NVML told nothing while it was measured.",)


def test_it_is_measured_again_until_nothing_disturbs(stub: StubNvml) -> None:
    stub.work(0, (OWN, 60), (OTHER, 40))
    trials = []

    def trial() -> Timed[str]:
        trials.append(1)
        if len(trials) == 3:
            stub.work(0, (OWN, 60))
            read_some(stub)
        return measured(stub)

    with Watch(uuid()) as watch:
        result, conditions = when_quiet(watch, trial, lambda: {OWN})
    assert (result, conditions.tries, len(trials)) == ("measured", 3, 3)
    assert conditions.disturbed == ""


def test_too_busy_is_said_in_words(stub: StubNvml) -> None:
    stub.work(0, (OWN, 60), (OTHER, 40))
    with (
        Watch(uuid()) as watch,
        pytest.raises(
            TooBusy, match=rf"Process {OTHER} used .* 2 times, .* is recorded"
        ),
    ):
        when_quiet(watch, lambda: measured(stub), lambda: {OWN}, tries=2)


def test_a_gpu_in_use_is_not_measured_at_all(stub: StubNvml) -> None:
    stub.set(0, utilization_percent=70)
    with Watch(uuid()) as watch, pytest.raises(TooBusy, match="70 % busy while"):
        when_quiet(
            watch, lambda: pytest.fail("it was measured"), lambda: {OWN}, tries=2
        )


def test_where_processes_are_hidden_the_gpu_is_looked_at_before_and_after(
    stub: StubNvml,
) -> None:
    stub.fault(PROCESS_CALL, rc=NOT_SUPPORTED)
    stub.work(0)

    def trial() -> Timed[str]:
        timed = measured(stub, ["nvmlDeviceGetClockInfo"])
        stub.set(0, utilization_percent=80)
        return timed

    with Watch(uuid()) as watch, pytest.raises(TooBusy, match="80 % busy while"):
        when_quiet(watch, trial, lambda: {OWN}, tries=2)


def test_without_nvml_it_is_said_that_nobody_watched() -> None:
    with Watch("GPU-of-nobody") as watch:
        now_ns = time.monotonic_ns()
        trial = Timed("measured", now_ns, now_ns)
        result, conditions = when_quiet(watch, lambda: trial, lambda: {OWN})
    assert result == "measured"
    assert conditions.sm_clock_mhz is None
    assert len(conditions.unknown) == 1
