"""GPUs as a person meets them: whole readings, and each absence in words."""

import time
from collections.abc import Callable

import pytest

from tests.stub_nvml import (
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    StubNvml,
)
from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.frames import Absence
from warpbook_monitors.metrics import GPM, NVML
from warpbook_monitors.nvml_probe import NvmlProbe, NvmlSource

MakeStub = Callable[..., StubNvml]
SECOND_NS = 1_000_000_000

#: what is asked of a GPU again and again: the functions, the older and the newer
#: where there are two, and the metrics that hang on them
CALLS = [
    (
        ("nvmlDeviceGetUtilizationRates",),
        {"gpu_utilization_ratio", "memory_utilization_ratio"},
    ),
    (
        ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"),
        {"memory_used_bytes"},
    ),
    (("nvmlDeviceGetPowerUsage",), {"power_watts"}),
    (
        ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"),
        {"temperature_celsius"},
    ),
    (("nvmlDeviceGetClockInfo",), {"sm_clock_mhz", "memory_clock_mhz"}),
    (
        (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ),
        {"clocks_event_reasons"},
    ),
    (("nvmlDeviceGetComputeRunningProcesses_v3",), {"process_count"}),
    (("nvmlDeviceGetTotalEnergyConsumption",), {"energy_joules"}),
    (("nvmlGpmSampleGet",), set(GPM)),
    (("nvmlGpmMetricsGet",), set(GPM)),
]
NVLINK = {"nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"}


def open_gpus() -> list[NvmlProbe]:
    return list(NvmlSource().open().probes)


def states(probe: NvmlProbe) -> dict[str, str]:
    return {metric.name: metric.state for metric in probe.device.metrics}


def whys(probe: NvmlProbe) -> dict[str, str]:
    return {metric.name: metric.why for metric in probe.device.metrics if metric.why}


def read(probe: NvmlProbe, now_ns: int | None = None) -> dict[str, float | None]:
    names = [metric.name for metric in probe.device.metrics]
    values = probe.read(time.monotonic_ns() if now_ns is None else now_ns)
    return dict(zip(names, values, strict=True))


def test_an_h200_gives_everything(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml("h200", "h200")
    stub.set(
        0,
        utilization_percent=100,
        memory_utilization_percent=37,
        memory_used_bytes=12_345_678_901,
        power_mw=690_431,
        temperature_celsius=61,
        sm_clock_mhz=1755,
        clocks_event_reasons=4,
        process_count=2,
        energy_mj=11_451_408,
    )
    stub.set_gpm(
        0,
        SM_UTIL=96.4444,
        SM_OCCUPANCY=14.1,
        ANY_TENSOR_UTIL=93.59205,
        FP32_UTIL=0.25,
        FP16_UTIL=1.5,
        FP64_UTIL=2,
        INTEGER_UTIL=3,
        DRAM_BW_UTIL=16.6158,
        PCIE_RX_PER_SEC=14,
        PCIE_TX_PER_SEC=15,
        NVLINK_TOTAL_RX_PER_SEC=1000,
        NVLINK_TOTAL_TX_PER_SEC=2000,
    )
    probe, _ = open_gpus()
    device = probe.device
    assert (device.id, device.kind, device.name, device.index, device.origin) == (
        "gpu:GPU-57ab0000-0000-4000-8000-000000000000",
        "gpu",
        "NVIDIA H200",
        0,
        "live",
    )
    assert device.facts == {
        "uuid": "GPU-57ab0000-0000-4000-8000-000000000000",
        "driver_version": "580.159.04",
        "cuda_version": "13.0",
        "memory_total_bytes": 150754820096,
        "memory_reserved_bytes": 644939776,
        "power_limit_watts": 700.0,
        "sm_clock_max_mhz": 1980,
        "memory_clock_max_mhz": 3201,
        "compute_capability": "9.0",
        "cuda_core_count": 16896,
        "sm_count": 132,
        "memory_bus_bits": 6016,
        "pcie_generation": 5,
        "pcie_width": 16,
        "mig_mode": "disabled",
        "nvlink_count": 18,
    }
    assert device.metrics == tuple(
        kind.on_device() for kind in (*NVML.values(), *GPM.values())
    )
    time.sleep(0.11)
    assert read(probe) == {
        "gpu_utilization_ratio": 1.0,
        "memory_utilization_ratio": 0.37,
        "memory_used_bytes": 12_345_678_901,
        "power_watts": 690.431,
        "temperature_celsius": 61,
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 3201,
        "clocks_event_reasons": 4,
        "process_count": 2,
        "energy_joules": 11451.408,
        "sm_active_ratio": 0.96444,
        "sm_occupancy_ratio": 0.141,
        "tensor_active_ratio": 0.93592,
        "fp32_active_ratio": 0.0025,
        "fp64_active_ratio": 0.02,
        "fp16_active_ratio": 0.015,
        "integer_active_ratio": 0.03,
        "dram_active_ratio": 0.16616,
        "pcie_rx_bytes_per_s": 14_680_064,
        "pcie_tx_bytes_per_s": 15_728_640,
        "nvlink_rx_bytes_per_s": 1_048_576_000,
        "nvlink_tx_bytes_per_s": 2_097_152_000,
    }


def test_an_a100_is_useful_and_says_what_is_missing(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml("a100")
    stub.set(0, utilization_percent=55, memory_used_bytes=7, process_count=1)
    why = "NVML's performance monitoring (GPM) needs a Hopper GPU or newer."
    opened = NvmlSource().open()
    [probe] = opened.probes
    assert opened.absences == (Absence("GPM on GPU 0", "not_supported", why),)
    assert probe.device.metrics == (
        *(kind.on_device() for kind in NVML.values()),
        *(kind.on_device("not_supported", why) for kind in GPM.values()),
    )
    assert probe.device.facts["sm_count"] == 108
    assert read(probe) == {
        "gpu_utilization_ratio": 0.55,
        "memory_utilization_ratio": 0.0,
        "memory_used_bytes": 7,
        "power_watts": 61.23,
        "temperature_celsius": 36,
        "sm_clock_mhz": 210,
        "memory_clock_mhz": 1593,
        "clocks_event_reasons": 1,
        "process_count": 1,
        "energy_joules": 11439.037,
        **dict.fromkeys(GPM),
    }


def test_a_gpu_alone_has_no_nvlink(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    why = "No NVLink of this GPU is up."
    assert whys(probe) == dict.fromkeys(NVLINK, why)
    assert probe.device.facts["nvlink_count"] == 0


def test_a_gpu_of_one_memory_with_the_host_stays_useful(stub_nvml: StubNvml) -> None:
    stub_nvml.fault("nvmlDeviceGetMemoryInfo_v2", rc=NOT_SUPPORTED)
    stub_nvml.fault("nvmlDeviceGetMemoryInfo", rc=NOT_SUPPORTED)
    [probe] = open_gpus()
    assert "see the host's" in whys(probe)["memory_used_bytes"]
    assert "memory_total_bytes" not in probe.device.facts
    reading = read(probe)
    assert reading["memory_used_bytes"] is None
    assert reading["power_watts"] == 122.289


def test_mig_is_named_as_the_reason(stub_nvml: StubNvml) -> None:
    stub_nvml.set(0, mig=1)
    [probe] = open_gpus()
    for name in ("gpu_utilization_ratio", "sm_active_ratio"):
        assert states(probe)[name] == "not_supported"
        assert "MIG instances" in whys(probe)[name]
    assert states(probe)["power_watts"] == "ok"
    assert probe.device.facts["mig_mode"] == "enabled"


@pytest.mark.parametrize(("functions", "metrics"), CALLS, ids=lambda p: str(p)[2:30])
@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        (NOT_SUPPORTED, "not_supported", "not "),
        (NO_PERMISSION, "no_permission", "may not call"),
        (UNKNOWN, "unavailable", "failed: Unknown Error"),
    ],
)
def test_a_refused_call_costs_only_its_own_metrics(
    make_stub_nvml: MakeStub,
    functions: tuple[str, ...],
    metrics: set[str],
    code: int,
    state: str,
    says: str,
) -> None:
    stub = make_stub_nvml("h200", "h200")
    stub.no_delays()
    probe, _ = open_gpus()
    for function in functions:
        stub.fault(function, rc=code)
    now_ns = time.monotonic_ns() + 2 * SECOND_NS  # the slow tier is due
    for tick in range(4):
        # a window of GPM for the last read; for all of them where GPM is refused
        time.sleep(0.11 if tick == 3 or metrics == set(GPM) else 0)
        reading = read(probe, now_ns + tick)
    assert {name for name, value in reading.items() if value is None} == metrics
    assert {name for name, each in states(probe).items() if each == state} == metrics
    assert all(says in whys(probe)[name] for name in metrics)

    # it is not asked before 10 s have passed, and then it is well again
    asked = stub.calls(functions[0])
    read(probe, now_ns + 9 * SECOND_NS)
    assert stub.calls(functions[0]) == asked
    for function in functions:
        stub.fault(function)
    read(probe, now_ns + 11 * SECOND_NS)
    time.sleep(0.11)
    reading = read(probe, now_ns + 11 * SECOND_NS)
    assert set(states(probe).values()) == {"ok"}
    assert None not in reading.values()


def test_a_gpu_that_hangs_when_opened_hides_no_other(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.nvml_probe.GPU_OPEN_TIMEOUT_S", 0.5)
    stub = make_stub_nvml("h200", "a100")
    stub.fault("nvmlDeviceGetPowerUsage", delay_ms=2000, gpu=1)
    source = NvmlSource()
    opened = source.open()
    assert [probe.device.index for probe in opened.probes] == [0]
    (silent,) = [each for each in opened.absences if each.what == "GPU 1"]
    assert "did not answer" in silent.message
    source.close()
    assert stub.calls("nvmlShutdown") == 0, "under a call that still runs"
    time.sleep(2)
    source.close()
    assert stub.calls("nvmlShutdown") == 1


@pytest.mark.parametrize(("functions", "metrics"), CALLS, ids=lambda p: str(p)[2:30])
def test_one_lost_gpu_is_lost_alone(
    make_stub_nvml: MakeStub, functions: tuple[str, ...], metrics: set[str]
) -> None:
    stub = make_stub_nvml("h200", "h200")
    stub.no_delays()
    well, lost = open_gpus()
    time.sleep(0.11)
    stub.fault(functions[0], rc=LOST, gpu=1)
    now_ns = time.monotonic_ns() + 2 * SECOND_NS
    with pytest.raises(DeviceLost, match="GPU is lost"):
        lost.read(now_ns)
    assert None not in read(well, now_ns).values()


def test_a_call_that_is_deprecated_away_has_a_successor(stub_nvml: StubNvml) -> None:
    stub_nvml.fault("nvmlDeviceGetTemperature", rc=FUNCTION_NOT_FOUND)
    [probe] = open_gpus()
    assert read(probe)["temperature_celsius"] == 36


def test_a_lost_gpu_is_asked_every_ten_seconds_and_comes_back(
    make_stub_nvml: MakeStub,
) -> None:
    stub = make_stub_nvml("h200")
    [probe] = open_gpus()
    name = probe.device.id
    now_ns = time.monotonic_ns()
    stub.set(0, rc=LOST)
    with pytest.raises(DeviceLost):
        probe.read(now_ns)
    calls = stub.calls()
    for tick in range(1, 100):
        with pytest.raises(DeviceLost):
            probe.read(now_ns + tick * SECOND_NS // 10)
    assert stub.calls() == calls
    with pytest.raises(DeviceLost):
        probe.read(now_ns + 10 * SECOND_NS)
    assert stub.calls() == calls + 1
    stub.set(0, rc=0)
    assert read(probe, now_ns + 20 * SECOND_NS)["power_watts"] == 122.289
    assert probe.device.id == name


def test_a_call_that_fails_once_changes_no_description(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    described = probe.device
    stub_nvml.fault("nvmlDeviceGetPowerUsage", rc=UNKNOWN)
    assert read(probe)["power_watts"] is None
    stub_nvml.fault("nvmlDeviceGetPowerUsage")
    assert read(probe)["power_watts"] == 122.289
    assert probe.device is described


def test_what_fails_from_the_start_is_described_so(stub_nvml: StubNvml) -> None:
    stub_nvml.fault("nvmlDeviceGetPowerUsage", rc=UNKNOWN)
    [probe] = open_gpus()
    assert states(probe)["power_watts"] == "unavailable"
    assert whys(probe)["power_watts"] == (
        "nvmlDeviceGetPowerUsage failed: Unknown Error."
    )


def test_costly_calls_are_made_once_a_second(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    asked = stub_nvml.calls("nvmlDeviceGetTotalEnergyConsumption")
    now_ns = time.monotonic_ns() + SECOND_NS
    energies = []
    for tick in range(25):
        stub_nvml.set(0, energy_mj=1000 * tick)
        energies.append(read(probe, now_ns + tick * SECOND_NS // 10)["energy_joules"])
    assert energies == [0] * 10 + [10] * 10 + [20] * 5
    assert stub_nvml.calls("nvmlDeviceGetTotalEnergyConsumption") - asked == 3
    assert stub_nvml.calls("nvmlDeviceGetPowerUsage") == 1 + 25


def test_slow_and_static_calls_are_not_made_while_reading(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    static = ("nvmlDeviceGetMigMode", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetUUID")
    before = [stub_nvml.calls(name) for name in static]
    for _ in range(5):
        probe.read(time.monotonic_ns())
    assert [stub_nvml.calls(name) for name in static] == before
    assert stub_nvml.calls("nvmlDeviceGetPcieThroughput") == 0
    assert stub_nvml.calls("nvmlDeviceGetFieldValues") == 0


def test_a_gpu_that_cannot_be_opened_is_told_beside_the_others(
    make_stub_nvml: MakeStub,
) -> None:
    stub = make_stub_nvml("h200", "h200", "h200")
    stub.set(0, rc=NO_PERMISSION)
    stub.set(1, rc=LOST)
    opened = NvmlSource().open()
    assert [probe.device.index for probe in opened.probes] == [2]
    assert [(a.what, a.reason) for a in opened.absences] == [
        ("GPU 0", "no_permission"),
        ("GPU 1", "lost"),
    ]


def test_no_gpu_that_can_be_opened_is_told(stub_nvml: StubNvml) -> None:
    stub_nvml.set(0, rc=NO_PERMISSION)
    with pytest.raises(Unavailable) as caught:
        NvmlSource().open()
    assert caught.value.absence.reason == "no_permission"
    assert "GPU 0: This user may not call" in caught.value.absence.message


def test_everything_is_given_back(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml("h200", "a100")
    source = NvmlSource()
    for probe in source.open().probes:
        probe.read(time.monotonic_ns())
    source.close()
    assert stub.gpm_samples == 0
    assert stub.calls("nvmlShutdown") == 1
