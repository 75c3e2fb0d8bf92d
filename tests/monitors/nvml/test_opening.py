"""Opening the GPUs: one that fails, hangs or comes late hides no other."""

import queue
import time
from collections.abc import Callable

import pytest

from tests.programs import wait_for
from tests.stub_nvml import LOST, NO_PERMISSION, StubNvml
from warpbook_monitors.errors import Unavailable
from warpbook_monitors.frames import Devices, Frame
from warpbook_monitors.nvml.probe import NvmlProbe, NvmlSource
from warpbook_monitors.open_sources import SHIPPED_RECORDING
from warpbook_monitors.sampling.sampler import Message, Sampler

MakeStub = Callable[..., StubNvml]


def test_a_defect_in_opening_one_gpu_hides_no_other(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_stub_nvml("h200", "h200")

    class Defective(NvmlProbe):
        def __init__(self, index: int) -> None:
            if index == 0:
                raise ZeroDivisionError
            super().__init__(index)

    monkeypatch.setattr("warpbook_monitors.nvml.probe.NvmlProbe", Defective)
    opened = NvmlSource().open()
    assert [probe.device.index for probe in opened.probes] == [1]
    (absence,) = opened.absences
    assert (absence.what, absence.reason) == ("GPU 0", "unknown")
    assert "ZeroDivisionError" in absence.message


def test_a_gpu_that_hangs_when_opened_hides_no_other(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.nvml.probe.GPU_OPEN_TIMEOUT_S", 3)
    stub = make_stub_nvml("h200", "a100")
    stub.fault("nvmlDeviceGetPowerUsage", delay_ms=600_000, gpu=1)
    source = NvmlSource()
    opened = source.open()
    assert [probe.device.index for probe in opened.probes] == [0]
    (silent,) = [absence for absence in opened.absences if absence.what == "GPU 1"]
    assert "did not answer" in silent.message
    source.close()
    assert stub.calls("nvmlShutdown") == 0, "under a call that still runs"
    stub.fault("nvmlDeviceGetPowerUsage")

    def is_shut_down() -> bool | None:
        source.close()
        return stub.calls("nvmlShutdown") > 0 or None

    wait_for("the end of NVML", is_shut_down)
    assert stub.calls("nvmlShutdown") == 1


def test_a_gpu_that_answers_late_is_taken_then(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.nvml.probe.GPU_OPEN_TIMEOUT_S", 3)
    stub = make_stub_nvml("h200", "h200")
    stub.fault("nvmlDeviceGetPowerUsage", delay_ms=600_000, gpu=1)
    sampler = Sampler([NvmlSource()])
    messages: queue.Queue[Message] = queue.Queue()
    sampler.listen(messages.put)
    sampler.open()
    assert [device.index for device in sampler.devices] == [0]
    assert [absence.what for absence in sampler.absences] == ["GPU 1"]
    with sampler.watch("test"):
        stub.fault("nvmlDeviceGetPowerUsage")
        while not isinstance(message := messages.get(timeout=60), Devices):
            pass
        assert [device.index for device in message.devices] == [0, 1]
        assert message.absences == ()
        while not (
            isinstance(message := messages.get(timeout=60), Frame)
            and [reading.state for reading in message.readings] == ["ok", "ok"]
        ):
            pass
    assert sampler.absences == ()
    sampler.close()
    assert stub.calls("nvmlShutdown") == 1


def test_while_every_gpu_hangs_nothing_is_played_in_their_place(
    make_stub_nvml: MakeStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.nvml.probe.GPU_OPEN_TIMEOUT_S", 0.3)
    stub = make_stub_nvml("h200", "a100")
    stub.fault("nvmlDeviceGetPowerUsage", delay_ms=600_000)
    sampler = Sampler([NvmlSource()], stand_in=SHIPPED_RECORDING)
    messages: queue.Queue[Message] = queue.Queue()
    sampler.listen(messages.put)
    sampler.open()
    assert (sampler.devices, sampler.replay) == ((), None)
    assert [absence.what for absence in sampler.absences] == ["GPU 0", "GPU 1"]
    with sampler.watch("test"):
        stub.fault("nvmlDeviceGetPowerUsage")
        while not (
            isinstance(message := messages.get(timeout=60), Frame)
            and [reading.state for reading in message.readings] == ["ok", "ok"]
        ):
            pass
    assert {device.origin for device in sampler.devices} == {"live"}
    assert {device.name for device in sampler.devices} == {
        "NVIDIA H200",
        "NVIDIA A100-SXM4-80GB",
    }
    sampler.close()
    assert stub.calls("nvmlShutdown") == 1


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
