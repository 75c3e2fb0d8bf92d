"""GPUs as a person meets them: whole readings, and each absence in words."""

import time
from collections.abc import Callable

import msgspec
import pytest

from tests.programs import wait_for
from tests.stub_nvml import FUNCTION_NOT_FOUND, LOST, NOT_SUPPORTED, UNKNOWN, StubNvml
from warpbook_monitors.errors import DeviceLost
from warpbook_monitors.frames import Absence, Frame, Reading
from warpbook_monitors.metrics import GPM, NVML
from warpbook_monitors.nvml.gpm import CHIP_NAMES
from warpbook_monitors.nvml.probe import NvmlProbe, NvmlSource

MakeStub = Callable[..., StubNvml]
SECOND_NS = 1_000_000_000

RETIRED = ("retired_pages_count", "retired_pages_pending")
NO_PAGES = "This GPU retires no pages; newer ones remap rows."
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
        performance_state=2,
        encoder_percent=21,
        decoder_percent=22,
        jpeg_percent=23,
        optical_flow_percent=24,
        pcie_generation_now=1,
        rows_corrected=3,
        rows_uncorrected=4,
        rows_pending=1,
    )
    stub.set_ecc(0, 5, 6, 7, 8)
    stub.set_gpm(
        0,
        SM_UTIL=96.4444,
        SM_OCCUPANCY=14.1,
        ANY_TENSOR_UTIL=93.59205,
        HMMA_TENSOR_UTIL=90,
        IMMA_TENSOR_UTIL=2.5,
        DFMA_TENSOR_UTIL=1,
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
        "power_limit_watts": 700.0,
        "temperature_slowdown_celsius": 90,
        "temperature_shutdown_celsius": 95,
        "sm_clock_max_mhz": 1980,
        "memory_clock_max_mhz": 3201,
        "compute_capability": "9.0",
        "cuda_core_count": 16896,
        "sm_count": 132,
        "memory_bus_bits": 6016,
        "pcie_generation": 5,
        "pcie_width": 16,
        "mig_mode": "disabled",
        "ecc_mode": "enabled",
        "nvlink_count": 18,
    }
    assert [metric.name for metric in device.metrics] == [*NVML, *GPM]
    assert whys(probe) == dict.fromkeys(RETIRED, NO_PAGES)

    def with_a_window() -> dict[str, float | None] | None:
        """Read; none of GPM comes while another test's thread reads its first one."""
        time.sleep(0.11)
        reading = read(probe)
        return None if reading["sm_active_ratio"] is None else reading

    assert wait_for("a window of GPM", with_a_window) == {
        "gpu_utilization_ratio": 1.0,
        "memory_utilization_ratio": 0.37,
        "memory_used_bytes": 12_345_678_901,
        "memory_free_bytes": 150754820096 - 644939776 - 12_345_678_901,
        "memory_reserved_bytes": 644939776,
        "power_watts": 690.431,
        "power_limit_watts": 700.0,
        "temperature_celsius": 61,
        "memory_temperature_celsius": 41,
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 3201,
        "clocks_event_reasons": 4,
        "performance_state": 2,
        "encoder_utilization_ratio": 0.21,
        "decoder_utilization_ratio": 0.22,
        "jpeg_utilization_ratio": 0.23,
        "optical_flow_utilization_ratio": 0.24,
        "pcie_link_generation": 1,
        "pcie_link_width": 16,
        "process_count": 2,
        "energy_joules": 11451.408,
        "ecc_corrected_count": 5,
        "ecc_uncorrected_count": 6,
        "ecc_corrected_lifetime_count": 7,
        "ecc_uncorrected_lifetime_count": 8,
        "remapped_rows_corrected_count": 3,
        "remapped_rows_uncorrected_count": 4,
        "remapped_rows_pending": 1,
        "remapped_rows_failed": 0,
        "retired_pages_count": None,
        "retired_pages_pending": None,
        "sm_active_ratio": 0.96444,
        "sm_occupancy_ratio": 0.141,
        "tensor_active_ratio": 0.93592,
        "hmma_active_ratio": 0.9,
        "imma_active_ratio": 0.025,
        "dfma_active_ratio": 0.01,
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
    stub = make_stub_nvml("a100", "a100")
    stub.set(0, utilization_percent=55, memory_used_bytes=7, process_count=1)
    stub.set(0, pcie_tx_kb_per_s=2000, pcie_rx_kb_per_s=3000)
    # GPM's numbers drive the stub's NVLink counters: KiB per ms
    stub.set_gpm(0, NVLINK_TOTAL_RX_PER_SEC=9000, NVLINK_TOTAL_TX_PER_SEC=5000)
    why = "NVML's performance monitoring (GPM) needs a Hopper GPU or newer."
    opened = NvmlSource().open()
    probe, _ = opened.probes
    assert Absence("GPM on GPU 0", "not_supported", why) in opened.absences
    reasons = whys(probe)
    assert {name for name, reason in reasons.items() if reason == why} == set(
        CHIP_NAMES
    )
    assert set(reasons) == {*CHIP_NAMES, *RETIRED}
    assert probe.device.facts["sm_count"] == 108
    now_ns = time.monotonic_ns()
    # so long that what a busy machine adds to it is a small part
    time.sleep(1)
    reading = read(probe, now_ns + 2 * SECOND_NS)
    assert {name for name, value in reading.items() if value is None} == set(reasons)
    assert reading["gpu_utilization_ratio"] == 0.55
    assert reading["memory_used_bytes"] == 7
    assert reading["power_watts"] == 61.23
    assert reading["memory_temperature_celsius"] == 38
    assert reading["pcie_rx_bytes_per_s"] == 3000 * 1000
    assert reading["pcie_tx_bytes_per_s"] == 2000 * 1000
    # over the time that passed, not over the time between two ticks
    assert reading["nvlink_rx_bytes_per_s"] == pytest.approx(9e6 * 1024, rel=0.2)
    assert reading["nvlink_tx_bytes_per_s"] == pytest.approx(5e6 * 1024, rel=0.2)


def test_no_mean_of_nvlink_spans_a_rest_or_a_reset(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml("a100", "a100")
    stub.no_delays()
    stub.set_gpm(0, NVLINK_TOTAL_RX_PER_SEC=9000)
    probe, _ = open_gpus()
    now_ns = time.monotonic_ns()
    probe.rest()
    assert read(probe, now_ns + 2 * SECOND_NS)["nvlink_rx_bytes_per_s"] is None
    time.sleep(0.01)
    assert read(probe, now_ns + 4 * SECOND_NS)["nvlink_rx_bytes_per_s"] is not None
    stub.set_gpm(0, NVLINK_TOTAL_RX_PER_SEC=1)
    assert read(probe, now_ns + 6 * SECOND_NS)["nvlink_rx_bytes_per_s"] is None


def test_pcie_is_measured_once_a_second_where_it_blocks(
    make_stub_nvml: MakeStub,
) -> None:
    stub = make_stub_nvml("a100")
    [probe] = open_gpus()
    call_count = stub.calls("nvmlDeviceGetPcieThroughput")
    now_ns = time.monotonic_ns() + SECOND_NS
    for tick in range(25):
        read(probe, now_ns + tick * SECOND_NS // 10)
    assert stub.calls("nvmlDeviceGetPcieThroughput") - call_count == 2 * 3


def test_a_t4_counts_pages_and_has_no_nvlink(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml("t4", "t4")
    stub.set(0, pages_single=2, pages_double=3, pages_pending=1, has_ecc=0)
    probe, _ = open_gpus()
    reading = read(probe)
    assert reading["retired_pages_count"] == 5
    assert reading["retired_pages_pending"] == 1
    assert reading["pcie_rx_bytes_per_s"] == 718 * 1000
    reasons = whys(probe)
    assert reasons["nvlink_rx_bytes_per_s"] == "No NVLink of this GPU is up."
    assert "spare rows" in reasons["remapped_rows_pending"]
    assert "ECC" in reasons["ecc_uncorrected_count"]
    assert states(probe)["memory_temperature_celsius"] == "not_supported"


def test_a_changed_power_limit_is_told(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    stub_nvml.set(0, power_limit_mw=450_000)
    now_ns = time.monotonic_ns()
    assert read(probe, now_ns)["power_limit_watts"] == 700
    assert read(probe, now_ns + 11 * SECOND_NS)["power_limit_watts"] == 450
    assert probe.device.facts["power_limit_watts"] == 450


def test_a_frame_of_eight_busy_gpus_is_small(make_stub_nvml: MakeStub) -> None:
    stub = make_stub_nvml(*["h200"] * 8)
    stub.no_delays()
    for gpu in range(8):
        stub.set(gpu, memory_used_bytes=123_456_789_012, power_mw=690_431)
        stub.set(gpu, energy_mj=11_451_408_123, utilization_percent=99)
        shares = ("SM_UTIL", "SM_OCCUPANCY", "ANY_TENSOR_UTIL", "HMMA_TENSOR_UTIL")
        shares += ("FP32_UTIL", "DRAM_BW_UTIL", "INTEGER_UTIL", "FP16_UTIL")
        stub.set_gpm(gpu, **dict.fromkeys(shares, 93.59205))
        links = ("PCIE_RX", "PCIE_TX", "NVLINK_TOTAL_RX", "NVLINK_TOTAL_TX")
        stub.set_gpm(gpu, **{f"{link}_PER_SEC": 321_098.7 for link in links})
    probes = open_gpus()
    time.sleep(0.11)
    readings = tuple(
        Reading(position, "ok", probe.read(time.monotonic_ns()))
        for position, probe in enumerate(probes)
    )
    frame = Frame(123_456, 1_700_000_000_123.456, readings)
    # host and monitor come on top
    assert len(msgspec.json.encode(frame)) < 2800


def test_a_gpu_alone_has_no_nvlink(stub_nvml: StubNvml) -> None:
    [probe] = open_gpus()
    why = "No NVLink of this GPU is up."
    reasons = dict.fromkeys(NVLINK, why) | dict.fromkeys(RETIRED, NO_PAGES)
    assert whys(probe) == reasons
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
    call_count = stub_nvml.calls("nvmlDeviceGetTotalEnergyConsumption")
    now_ns = time.monotonic_ns() + SECOND_NS
    energies = []
    for tick in range(25):
        stub_nvml.set(0, energy_mj=1000 * tick)
        energies.append(read(probe, now_ns + tick * SECOND_NS // 10)["energy_joules"])
    assert energies == [0] * 10 + [10] * 10 + [20] * 5
    assert stub_nvml.calls("nvmlDeviceGetTotalEnergyConsumption") - call_count == 3
    assert stub_nvml.calls("nvmlDeviceGetPowerUsage") == 1 + 25


def test_slow_and_static_calls_are_not_made_while_reading(stub_nvml: StubNvml) -> None:
    # not so late, however busy the machine is, that they are due
    now_ns = time.monotonic_ns()
    [probe] = open_gpus()
    fields = stub_nvml.calls("nvmlDeviceGetFieldValues")
    static = ("nvmlDeviceGetMigMode", "nvmlDeviceGetNumGpuCores", "nvmlDeviceGetUUID")
    before = [stub_nvml.calls(name) for name in static]
    for _ in range(5):
        probe.read(now_ns)
    assert [stub_nvml.calls(name) for name in static] == before
    assert stub_nvml.calls("nvmlDeviceGetPcieThroughput") == 0
    assert stub_nvml.calls("nvmlDeviceGetFieldValues") == fields
