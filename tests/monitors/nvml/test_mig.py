"""MIG: each instance is a device of its own; they come and go while one watches."""

import queue
import time
from collections.abc import Callable, Iterator

import pytest

from tests.stub_nvml import NO_PERMISSION, NOT_SUPPORTED, XID_EVENT, StubNvml
from warpbook_monitors.errors import DeviceLost
from warpbook_monitors.frames import Devices, Event, Frame
from warpbook_monitors.metrics import MIG
from warpbook_monitors.nvml import mig
from warpbook_monitors.nvml import probe as nvml_probe
from warpbook_monitors.nvml.mig import MigProbe
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.sampling.sampler import Message, Sampler
from warpbook_monitors.source import Discovery

SECOND_NS = 1_000_000_000
FIRST = "mig:MIG-57ab0000-0000-4000-8000-000000000016"
SECOND = "mig:MIG-57ab0000-0000-4000-8000-000000000017"


@pytest.fixture
def stub(make_stub_nvml: Callable[..., StubNvml]) -> StubNvml:
    """An H200 in two halves: one works, one idles."""
    stub = make_stub_nvml("h200")
    stub.no_delays()
    stub.set(0, mig=1)
    busy = stub.make_instance(0, 0, slices=3, SM_UTIL=75, HMMA_TENSOR_UTIL=50)
    busy.memory_used_bytes, busy.pid = 5 << 30, 4242
    stub.make_instance(0, 1, slices=2)
    return stub


@pytest.fixture
def opened(stub: StubNvml) -> Iterator[Discovery]:
    source = NvmlSource()
    yield source.open()
    source.close()
    assert stub.gpm_samples == 0


def test_each_instance_is_a_device(stub: StubNvml, opened: Discovery) -> None:
    gpu, busy, idle = opened.probes
    assert busy.device.id == FIRST
    assert busy.device.kind == "mig"
    assert busy.device.name == "NVIDIA H200 MIG 3g.54gb"
    assert busy.device.facts == {
        "parent": gpu.device.id,
        "gpu_instance_id": 7,
        "compute_instance_id": 0,
        "memory_total_bytes": 54 << 30,
        "sm_count": 48,
        "gpu_slices": 3,
        "compute_slices": 3,
        "copy_engine_count": 3,
        "decoder_count": 3,
        "encoder_count": 0,
    }
    assert [metric.name for metric in busy.device.metrics] == list(MIG)
    assert {metric.state for metric in busy.device.metrics} == {"ok"}
    time.sleep(0.11)
    now_ns = time.monotonic_ns()
    first, second = (
        dict(zip(MIG, probe.read(now_ns), strict=True)) for probe in (busy, idle)
    )
    assert first["memory_used_bytes"] == 5 << 30
    assert first["memory_free_bytes"] == 49 << 30
    assert first["process_count"] == 1
    assert first["sm_active_ratio"] == 0.75
    assert first["hmma_active_ratio"] == 0.5
    assert second["sm_active_ratio"] == 0.0
    assert second["process_count"] == 0


def test_the_gpu_shows_what_it_can(opened: Discovery) -> None:
    metrics = {metric.name: metric for metric in opened.probes[0].device.metrics}
    assert metrics["power_watts"].state == "ok"
    assert metrics["temperature_celsius"].state == "ok"
    assert metrics["pcie_rx_bytes_per_s"].state == "ok"
    for name in ("gpu_utilization_ratio", "sm_active_ratio"):
        assert metrics[name].state == "not_supported"
        assert "MIG instances" in metrics[name].why


def test_an_a100_has_instances_without_gpm(
    make_stub_nvml: Callable[..., StubNvml],
) -> None:
    stub = make_stub_nvml("a100")
    stub.set(0, mig=1)
    stub.make_instance(0, 0).memory_used_bytes = 7
    _, instance = NvmlSource().open().probes
    values = dict(zip(MIG, instance.read(time.monotonic_ns()), strict=True))
    assert values["memory_used_bytes"] == 7
    assert values["sm_active_ratio"] is None
    metrics = {metric.name: metric for metric in instance.device.metrics}
    assert "Hopper" in metrics["sm_active_ratio"].why


def test_a_destroyed_instance_is_lost_and_the_others_go_on(
    stub: StubNvml, opened: Discovery
) -> None:
    gpu, first, second = opened.probes
    now_ns = time.monotonic_ns()
    stub.destroy_instance(0, 0)
    with pytest.raises(DeviceLost, match="MIG instance is gone"):
        first.read(now_ns + SECOND_NS)
    second.read(now_ns + SECOND_NS)
    gpu.read(now_ns + SECOND_NS)
    stub.make_instance(0, 0, slices=3)
    first.read(now_ns + 12 * SECOND_NS)


def test_an_instance_that_this_user_may_not_open_is_told(stub: StubNvml) -> None:
    stub.fault("nvmlDeviceGetGpuInstanceId", rc=NO_PERMISSION)
    opened = NvmlSource().open()
    assert not any(isinstance(probe, MigProbe) for probe in opened.probes)
    absences = [absence for absence in opened.absences if "MIG" in absence.what]
    assert {(absence.what, absence.reason) for absence in absences} == {
        ("A MIG instance of GPU 0", "no_permission")
    }


def test_a_gpu_whose_instances_have_gpm_says_so(stub: StubNvml) -> None:
    stub.fault("nvmlGpmSampleGet", rc=NOT_SUPPORTED)
    (absence,) = NvmlSource().open().absences
    assert absence.what == "GPM on GPU 0"
    assert absence.message.startswith(
        "MIG is on: NVML gives this for the MIG instances"
    )


def test_a_new_instance_comes_last_while_somebody_watches(
    stub: StubNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml_probe, "RETRY_NS", SECOND_NS // 10)
    stub.destroy_instance(0, 1)
    sampler = Sampler([NvmlSource()], rate_hz=20)
    messages: queue.Queue[Message] = queue.Queue()
    sampler.listen(messages.put)
    sampler.open()
    assert [device.kind for device in sampler.devices] == ["gpu", "mig"]
    with sampler.watch("test"):
        while not isinstance(messages.get(timeout=60), Frame):
            pass
        stub.make_instance(0, 1, slices=2)
        while not isinstance(message := messages.get(timeout=60), Devices):
            pass
        assert [device.id for device in message.devices][1:] == [FIRST, SECOND]
        while not (
            isinstance(message := messages.get(timeout=60), Frame)
            and [reading.state for reading in message.readings] == ["ok"] * 3
        ):
            pass
    sampler.close()


def test_an_xid_names_the_instance(stub: StubNvml) -> None:
    sampler = Sampler([NvmlSource()], rate_hz=20)
    messages: queue.Queue[Message] = queue.Queue()
    sampler.listen(messages.put)
    sampler.open()
    devices = []
    with sampler.watch("test"):
        for number, instance in ((31, 8), (43, 7), (79, -1)):
            stub.ring(0, XID_EVENT, number, gpu_instance=instance)
            while not isinstance(message := messages.get(timeout=60), Event):
                pass
            devices.append(message.device)
    assert devices == [SECOND, FIRST, sampler.devices[0].id]
    sampler.close()


def test_a_reused_handle_is_no_old_instance(
    stub: StubNvml, opened: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    # NVML hands out handles again: the same handle, another instance
    original = mig.call

    def other(name: str, *arguments: object) -> object:
        if name == "nvmlDeviceGetUUID":
            return "MIG-other"
        return original(name, *arguments)

    monkeypatch.setattr(mig, "call", other)
    with pytest.raises(DeviceLost, match="MIG instance is gone"):
        opened.probes[1].read(time.monotonic_ns() + SECOND_NS)
