"""GPM's windows: never too short, never over a pause, never an invented number."""

import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.stub_nvml import NO_PERMISSION, StubNvml
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml import gpm
from warpbook_monitors.nvml.gpm import GpmWindow


@pytest.fixture
def window(stub_nvml: StubNvml):
    """A window on a GPU that is busy all the time, as a function that reads it."""
    stub_nvml.set_gpm(0, SM_UTIL=96.4444, ANY_TENSOR_UTIL=93.592)
    return BusyGpu(GpmWindow(), nvml.call("nvmlDeviceGetHandleByIndex", 0))


#: a process of its own, since NVML would take this one with it
ALL_AT_ONCE = """
import threading, time
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gpm import GpmWindow

gpus = [nvml.call("nvmlDeviceGetHandleByIndex", number) for number in range(8)]
begin = threading.Barrier(8)


def read(gpu):
    window = GpmWindow(["sm_active_ratio"])
    begin.wait()
    window.read(gpu)
    time.sleep(0.15)
    window.read(gpu)
    time.sleep(0.15)
    read = window.read(gpu)
    values.append(read[0])


for _ in range(2):
    values = []
    threads = [threading.Thread(target=read, args=(gpu,)) for gpu in gpus]
    [each.start() for each in threads]
    [each.join() for each in threads]
    print(values)
    # NVML that was given back begins anew
    nvml.shutdown()
    nvml.call("nvmlDeviceGetCount")
"""


class BusyGpu:
    def __init__(self, window: GpmWindow, gpu: object) -> None:
        self.window, self.gpu = window, gpu

    def read(self) -> dict[str, float | None]:
        return dict(zip(gpm.NAMES, self.window.read(self.gpu), strict=True))

    def read_after(self, seconds: float) -> dict[str, float | None]:
        time.sleep(seconds)
        return self.read()


def test_jitter_makes_no_window_short(stub_nvml: StubNvml, window: BusyGpu) -> None:
    jitter = random.Random(1)
    reads = [window.read_after(jitter.uniform(0.02, 0.15)) for _ in range(25)]
    assert {read["sm_active_ratio"] for read in reads} == {None, 0.96444}
    assert {read["tensor_active_ratio"] for read in reads} == {None, 0.93592}
    assert stub_nvml.shortest_window_ms >= 100


def test_from_the_third_tick_on_every_tick_has_a_window(window: BusyGpu) -> None:
    reads = [window.read_after(0.07) for _ in range(8)]
    assert reads[0]["sm_active_ratio"] is None
    assert [read["sm_active_ratio"] for read in reads[2:]] == [0.96444] * 6


def test_a_window_is_not_longer_than_it_must_be(
    stub_nvml: StubNvml, window: BusyGpu
) -> None:
    # and further on a machine so busy that they are not
    for number in range(200):
        window.read_after(0.03)
        if number > 5 and stub_nvml.shortest_window_ms < 150:
            break
    # 30 ms apart, the youngest sample that is old enough is the fourth before
    assert 100 <= stub_nvml.shortest_window_ms < 150


def test_what_is_no_number_is_dropped(stub_nvml: StubNvml, window: BusyGpu) -> None:
    stub_nvml.set_gpm(
        0, SM_UTIL=float("nan"), PCIE_TX_PER_SEC=float("inf"), DRAM_BW_UTIL=17
    )
    window.read()
    read = window.read_after(0.11)
    assert read["sm_active_ratio"] is None
    assert read["pcie_tx_bytes_per_s"] is None
    assert read["dram_active_ratio"] == 0.17


def test_no_window_spans_a_rest(window: BusyGpu) -> None:
    window.read()
    window.window.rest()
    assert set(window.read_after(0.11).values()) == {None}


def test_no_window_spans_a_hung_call(
    window: BusyGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpm, "LONGEST_WINDOW_NS", 1_500_000_000)
    window.read()
    assert set(window.read_after(1.6).values()) == {None}
    assert window.read_after(0.11)["sm_active_ratio"] == 0.96444


def test_samples_are_used_again_and_freed(stub_nvml: StubNvml, window: BusyGpu) -> None:
    for _ in range(12):
        window.read_after(0.05)
    assert stub_nvml.gpm_samples <= 4
    window.window.close()
    assert stub_nvml.gpm_samples == 0


def test_a_failed_sample_is_not_leaked(stub_nvml: StubNvml, window: BusyGpu) -> None:
    window.read()
    stub_nvml.fault("nvmlGpmSampleGet", rc=NO_PERMISSION)
    for _ in range(5):
        with pytest.raises(nvml.NoPermission):
            window.read()
    assert stub_nvml.gpm_samples == 2


def test_only_what_a_metric_needs_is_asked(window: BusyGpu) -> None:
    window.read()
    metric_ids = [
        metric.metricId
        for metric in window.window._request.metrics
        if metric.metricId != 0
    ]
    # no single NVLink lanes, which make the call 4 to 10 times slower
    assert sorted(metric_ids) == [2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 20, 21, 60, 61]


def test_what_gpm_refuses_is_named_and_not_asked_again(window: BusyGpu) -> None:
    window.read()
    assert window.window.missing == frozenset()
    # a GPU alone: its NVLinks are not up
    assert window.read_after(0.11)["nvlink_rx_bytes_per_s"] is None
    assert window.window.missing == {"nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"}
    read = window.read_after(0.11)
    assert read["sm_active_ratio"] == 0.96444
    assert read["pcie_rx_bytes_per_s"] == 0


def test_units_are_ratios_and_bytes(make_stub_nvml: Callable[..., StubNvml]) -> None:
    stub = make_stub_nvml("h200", "h200")
    stub.set_gpm(
        1,
        SM_OCCUPANCY=14,
        FP32_UTIL=76.5,
        PCIE_RX_PER_SEC=56688.729,
        NVLINK_TOTAL_TX_PER_SEC=72079.1262,
    )
    busy = BusyGpu(GpmWindow(), nvml.call("nvmlDeviceGetHandleByIndex", 1))
    busy.read()
    assert busy.read_after(0.11) == {
        **dict.fromkeys(gpm.NAMES, 0),
        "sm_occupancy_ratio": 0.14,
        "fp32_active_ratio": 0.765,
        "pcie_rx_bytes_per_s": 59_442_440_700,
        "nvlink_tx_bytes_per_s": 75_580_441_834,
    }


def test_a_gpu_without_gpm_says_so(make_stub_nvml: Callable[..., StubNvml]) -> None:
    make_stub_nvml("a100")
    with pytest.raises(nvml.NotSupported, match="needs a Hopper GPU or newer"):
        GpmWindow().read(nvml.call("nvmlDeviceGetHandleByIndex", 0))


def test_gpus_that_are_read_all_at_once_from_the_first_do_not_end_the_process(
    make_stub_nvml: Callable[..., StubNvml],
) -> None:
    make_stub_nvml(*["h200"] * 8)
    completed = subprocess.run(
        [sys.executable, "-c", ALL_AT_ONCE], capture_output=True, text=True, timeout=60
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == [str([0.0] * 8)] * 2
