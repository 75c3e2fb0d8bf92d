"""Each call of NVML × what can go wrong with it: told, and nothing else disturbed."""

import queue
import time
from collections.abc import Callable, Iterable

import pytest

from tests.stub_nvml import LOST, NO_PERMISSION, NOT_SUPPORTED, UNKNOWN, StubNvml
from warpbook_monitors.errors import DeviceLost
from warpbook_monitors.frames import Frame
from warpbook_monitors.metrics import GPM, NVML
from warpbook_monitors.nvml import ways as nvml_ways
from warpbook_monitors.nvml.gpm import CHIP_NAMES
from warpbook_monitors.nvml.probe import NvmlProbe, NvmlSource
from warpbook_monitors.sampling.sampler import Message, Sampler

MakeStub = Callable[..., StubNvml]
SECOND_NS = 1_000_000_000

#: what an H200 never has, and an A100 does not have either
RETIRED = {"retired_pages_count", "retired_pages_pending"}
ECC = {
    "ecc_corrected_count",
    "ecc_uncorrected_count",
    "ecc_corrected_lifetime_count",
    "ecc_uncorrected_lifetime_count",
}
ROWS = {
    "remapped_rows_corrected_count",
    "remapped_rows_uncorrected_count",
    "remapped_rows_pending",
    "remapped_rows_failed",
}
#: by the functions, the older and the newer where there are two: what hangs on them
OF_AN_H200: dict[tuple[str, ...], set[str]] = {
    ("nvmlDeviceGetUtilizationRates",): {
        "gpu_utilization_ratio",
        "memory_utilization_ratio",
    },
    ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"): {
        "memory_used_bytes",
        "memory_free_bytes",
        "memory_reserved_bytes",
    },
    ("nvmlDeviceGetPowerUsage",): {"power_watts"},
    ("nvmlDeviceGetEnforcedPowerLimit",): {"power_limit_watts"},
    ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"): {"temperature_celsius"},
    ("nvmlDeviceGetClockInfo",): {"sm_clock_mhz", "memory_clock_mhz"},
    (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ): {"clocks_event_reasons"},
    ("nvmlDeviceGetPerformanceState",): {"performance_state"},
    ("nvmlDeviceGetEncoderUtilization",): {"encoder_utilization_ratio"},
    ("nvmlDeviceGetDecoderUtilization",): {"decoder_utilization_ratio"},
    ("nvmlDeviceGetJpgUtilization",): {"jpeg_utilization_ratio"},
    ("nvmlDeviceGetOfaUtilization",): {"optical_flow_utilization_ratio"},
    ("nvmlDeviceGetCurrPcieLinkGeneration",): {"pcie_link_generation"},
    ("nvmlDeviceGetCurrPcieLinkWidth",): {"pcie_link_width"},
    ("nvmlDeviceGetComputeRunningProcesses_v3",): {"process_count"},
    ("nvmlDeviceGetTotalEnergyConsumption",): {"energy_joules"},
    ("nvmlDeviceGetTotalEccErrors",): ECC,
    ("nvmlDeviceGetRemappedRows",): ROWS,
    ("nvmlDeviceGetFieldValues",): {"memory_temperature_celsius", *RETIRED},
    ("nvmlGpmSampleGet",): set(GPM),
    ("nvmlGpmMetricsGet",): set(GPM),
}
OF_AN_A100: dict[tuple[str, ...], set[str]] = {
    ("nvmlDeviceGetPcieThroughput",): {"pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"},
    ("nvmlDeviceGetFieldValues",): {
        "memory_temperature_celsius",
        "nvlink_rx_bytes_per_s",
        "nvlink_tx_bytes_per_s",
        *RETIRED,
    },
}
CALLS = [
    *(("h200", functions, metrics) for functions, metrics in OF_AN_H200.items()),
    *(("a100", functions, metrics) for functions, metrics in OF_AN_A100.items()),
]
each_call = pytest.mark.parametrize(
    ("shape", "functions", "metrics"),
    CALLS,
    ids=[f"{shape}-{functions[0]}" for shape, functions, _ in CALLS],
)


def open_two(make_stub_nvml: MakeStub, shape: str) -> tuple[StubNvml, list[NvmlProbe]]:
    stub = make_stub_nvml(shape, shape)
    stub.no_delays()
    return stub, list(NvmlSource().open().probes)


def states(probe: NvmlProbe) -> dict[str, str]:
    return {metric.name: metric.state for metric in probe.device.metrics}


def whys(probe: NvmlProbe) -> dict[str, str]:
    return {metric.name: metric.why for metric in probe.device.metrics}


def read_all(
    probe: NvmlProbe, times_ns: Iterable[int], window: bool = True
) -> dict[str, float | None]:
    """Read at these times, each at the end of a window of GPM if need be."""
    for now_ns in times_ns:
        time.sleep(0.11 if window else 0)
        values = probe.read(now_ns)
    names = [metric.name for metric in probe.device.metrics]
    return dict(zip(names, values, strict=True))


def silent(
    probe: NvmlProbe, metrics: set[str], times_ns: Iterable[int]
) -> tuple[set[str], set[str]]:
    """Metrics without a reading, and those that this kind of GPU never has.

    Where GPM's are not the matter they are left out: each window takes 0.1 s.
    """
    window = bool(metrics & set(GPM))
    reading = read_all(probe, times_ns, window)
    never = {*RETIRED, *CHIP_NAMES} if "A100" in probe.device.name else RETIRED
    left_out = set() if window else set(GPM)
    names = {name for name, value in reading.items() if value is None}
    return names - left_out, never - left_out


def test_every_metric_hangs_on_a_call_that_may_fail() -> None:
    assert set().union(*OF_AN_H200.values()) == {*NVML, *GPM}


@each_call
@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        (NOT_SUPPORTED, "not_supported", ""),
        (NO_PERMISSION, "no_permission", "may not call"),
        (UNKNOWN, "unavailable", "failed: Unknown Error"),
    ],
)
def test_a_refused_call_costs_only_its_own_metrics(
    make_stub_nvml: MakeStub,
    shape: str,
    functions: tuple[str, ...],
    metrics: set[str],
    code: int,
    state: str,
    says: str,
) -> None:
    stub, (probe, _) = open_two(make_stub_nvml, shape)
    before = states(probe)
    for function in functions:
        stub.fault(function, rc=code)
    now_ns = time.monotonic_ns() + 12 * SECOND_NS  # all tiers are due
    without, never = silent(
        probe, metrics, [now_ns, now_ns + 1, now_ns + 2, now_ns + 3]
    )
    assert without == metrics | never
    states_now = states(probe)
    assert {states_now[name] for name in metrics} == {state}
    assert all(says in whys(probe)[name] and whys(probe)[name] for name in metrics)
    assert {name: states_now[name] for name in states_now if name not in metrics} == {
        name: before[name] for name in before if name not in metrics
    }

    # it is not asked before 10 s have passed, and then it is well again
    call_count = stub.calls(functions[0])
    probe.read(now_ns + 9 * SECOND_NS)
    if functions[0] != "nvmlDeviceGetFieldValues":
        assert stub.calls(functions[0]) == call_count
    for function in functions:
        stub.fault(function)
    times_ns = [now_ns + 30 * SECOND_NS, now_ns + 32 * SECOND_NS]
    without, never = silent(probe, metrics, times_ns)
    assert states(probe) == before
    assert without == never


@each_call
def test_one_lost_gpu_is_lost_alone(
    make_stub_nvml: MakeStub, shape: str, functions: tuple[str, ...], metrics: set[str]
) -> None:
    stub, (well, lost) = open_two(make_stub_nvml, shape)
    stub.fault(functions[0], rc=LOST, gpu=1)
    now_ns = time.monotonic_ns() + 12 * SECOND_NS
    time.sleep(0.11 if metrics & set(GPM) else 0)
    with pytest.raises(DeviceLost, match="GPU is lost"):
        lost.read(now_ns)
    without, never = silent(well, metrics, [now_ns, now_ns + 2 * SECOND_NS])
    assert without == never


@pytest.mark.parametrize("part", [0, 1])
def test_a_call_that_hangs_makes_its_own_gpu_stale(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    # all at each tick; one GPU for each call, and one that is well
    monkeypatch.setattr(nvml_ways, "SLOW_PERIOD_NS", 0)
    monkeypatch.setattr(nvml_ways, "RARE_PERIOD_NS", 0)
    hanging = [functions[0] for functions in OF_AN_H200][part::2]
    well = len(hanging)
    stub = make_stub_nvml(*["h200"] * (well + 1))
    stub.no_delays()
    sampler = Sampler([NvmlSource()])
    frames: queue.Queue[Message] = queue.Queue()
    sampler.listen(frames.put)
    sampler.open()

    def wait_for(states: list[str]) -> None:
        """Until a frame is so; the GPU that is well never is otherwise."""
        while True:
            message = frames.get(timeout=60)
            if not isinstance(message, Frame):
                continue
            seen = [reading.state for reading in message.readings]
            if seen == states:
                return

    with sampler.watch("test"):
        wait_for(["ok"] * (well + 1))
        for gpu, function in enumerate(hanging):
            stub.fault(function, delay_ms=600_000, gpu=gpu)
        wait_for(["stale"] * well + ["ok"])
        for function in hanging:
            stub.fault(function)
        wait_for(["ok"] * (well + 1))
    sampler.close()


BITS_32 = 2**32 - 1
GARBAGE: list[tuple[dict[str, float], set[str]]] = [
    ({"power_mw": BITS_32}, {"power_watts"}),
    ({"power_limit_mw": BITS_32}, {"power_limit_watts"}),
    ({"temperature_celsius": BITS_32}, {"temperature_celsius"}),
    ({"memory_temperature_celsius": BITS_32}, {"memory_temperature_celsius"}),
    ({"sm_clock_mhz": BITS_32}, {"sm_clock_mhz"}),
    ({"performance_state": 32}, {"performance_state"}),
    ({"encoder_percent": BITS_32}, {"encoder_utilization_ratio"}),
    ({"pcie_generation_now": -1}, {"pcie_link_generation"}),
    ({"clocks_event_reasons": 2**64 - 1}, {"clocks_event_reasons"}),
    ({"energy_mj": 2**64 - 1}, {"energy_joules"}),
    ({"rows_corrected": -1}, ROWS),
    ({"memory_reserved_bytes": 2**63}, {"memory_reserved_bytes", "memory_free_bytes"}),
    (
        {"utilization_percent": BITS_32},
        {"gpu_utilization_ratio", "memory_utilization_ratio"},
    ),
]


@pytest.mark.parametrize(
    ("garbage", "metrics"), GARBAGE, ids=[next(iter(names)) for names, _ in GARBAGE]
)
def test_garbage_is_no_reading(
    make_stub_nvml: MakeStub, garbage: dict[str, float], metrics: set[str]
) -> None:
    stub, (probe, _) = open_two(make_stub_nvml, "h200")
    stub.set(0, **garbage)
    now_ns = time.monotonic_ns() + 12 * SECOND_NS
    without, _ = silent(probe, metrics, [now_ns, now_ns + 1, now_ns + 2])
    assert metrics <= without <= metrics | RETIRED | {"memory_used_bytes"}
    assert {states(probe)[name] for name in metrics} == {"unavailable"}
    assert all(whys(probe)[name] for name in metrics)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0, 1e300, 1e7])
def test_no_number_of_gpm_is_invented(make_stub_nvml: MakeStub, value: float) -> None:
    stub, (probe, _) = open_two(make_stub_nvml, "h200")
    stub.set_gpm(0, SM_UTIL=value, DRAM_BW_UTIL=17)
    # where both GPUs open at once, one of them takes its first sample later
    reading = read_all(probe, [time.monotonic_ns()] * 2)
    assert reading["sm_active_ratio"] is None
    assert reading["dram_active_ratio"] == 0.17


def test_pids_of_no_process_are_counted_and_not_believed(
    make_stub_nvml: MakeStub,
) -> None:
    stub, (probe, _) = open_two(make_stub_nvml, "h200")
    stub.hold(0, (0, 0), (BITS_32, 2**64 - 1))
    now_ns = time.monotonic_ns() + 2 * SECOND_NS
    assert read_all(probe, [now_ns])["process_count"] == 2
