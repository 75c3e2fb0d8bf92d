"""The gate to NVML: it starts late, says why it can't, and survives odd drivers."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.stub_nvml import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    VERSION_MISMATCH,
    StubNvml,
    build,
)
from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.probe import NvmlSource


def run(script: str, stub: StubNvml | None = None) -> object:
    """Run a program of its own on the stub, and give what it printed as JSON."""
    environment = {**os.environ, **(stub.env if stub else {})}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def test_nothing_is_asked_before_a_source_opens(stub_nvml: StubNvml) -> None:
    run(
        "from warpbook_monitors.nvml import gate as nvml, gpm, probe as nvml_probe\n"
        "nvml_probe.NvmlSource().close(); print(1)",
        stub_nvml,
    )
    assert stub_nvml.calls() == 0


@pytest.mark.parametrize(
    ("code", "reason", "says", "advises"),
    [
        (12, "no_library", "libnvidia-ml.so.1", "--gpus all"),
        (DRIVER_NOT_LOADED, "driver_not_loaded", "not running", "modprobe nvidia"),
        (VERSION_MISMATCH, "version_mismatch", "different versions", "Reboot"),
        (NO_PERMISSION, "no_permission", "no access", "/dev/nvidiactl"),
        (FUNCTION_NOT_FOUND, "version_mismatch", "too old", "Update"),
        (LOST, "lost", "fallen off the bus", "reboot"),
        (UNKNOWN, "unknown", "no reason", "restart it"),
        (23, "unknown", "did not start", "nvidia-smi"),
    ],
)
def test_why_nvml_does_not_start_is_told(
    stub_nvml: StubNvml, code: int, reason: str, says: str, advises: str
) -> None:
    stub_nvml.fault("nvmlInitWithFlags", rc=code)
    with pytest.raises(Unavailable) as caught:
        NvmlSource().open()
    absence = caught.value.absence
    assert (absence.what, absence.reason) == ("NVML", reason)
    assert says in absence.message
    assert advises in absence.remedy


def test_no_gpu_is_told(make_stub_nvml) -> None:
    make_stub_nvml()
    with pytest.raises(Unavailable) as caught:
        NvmlSource().open()
    assert caught.value.absence.reason == "no_device"


def test_a_missing_binding_is_told() -> None:
    lines = run(
        "import sys, json; sys.modules['pynvml'] = None\n"
        "from warpbook_monitors.nvml.probe import NvmlSource\n"
        "from warpbook_monitors.errors import Unavailable\n"
        "try: NvmlSource().open()\n"
        "except Unavailable as e: print(json.dumps([e.absence.reason, str(e)]))"
    )
    assert lines == [
        "not_installed",
        "NVML: The Python package nvidia-ml-py is not installed in this environment. "
        "Install it: pip install nvidia-ml-py",
    ]


def test_nvml_starts_when_the_driver_comes_later(stub_nvml: StubNvml) -> None:
    stub_nvml.fault("nvmlInitWithFlags", rc=DRIVER_NOT_LOADED)
    with pytest.raises(Unavailable):
        nvml.call("nvmlDeviceGetCount")
    stub_nvml.fault("nvmlInitWithFlags")
    assert nvml.call("nvmlDeviceGetCount") == 1


def test_nvml_starts_again_after_a_shutdown(stub_nvml: StubNvml) -> None:
    for _ in range(2):
        assert nvml.call("nvmlDeviceGetCount") == 1
        nvml.shutdown()
    assert stub_nvml.calls("nvmlShutdown") == 2


def test_a_source_closes_while_nvml_hangs_in_its_start(stub_nvml: StubNvml) -> None:
    stub_nvml.fault("nvmlInitWithFlags", delay_ms=100_000)
    source = NvmlSource()
    opening = threading.Thread(target=source.open)
    opening.start()
    source.close()
    assert opening.is_alive()
    stub_nvml.fault("nvmlInitWithFlags")
    opening.join()


@pytest.mark.parametrize(
    ("code", "error", "says"),
    [
        (NOT_SUPPORTED, nvml.NotSupported, "does not support nvmlDeviceGetPower"),
        (NO_PERMISSION, nvml.NoPermission, "may not call nvmlDeviceGetPower"),
        (FUNCTION_NOT_FOUND, nvml.FunctionMissing, "driver is too old"),
        (UNKNOWN, nvml.NvmlError, "nvmlDeviceGetPowerUsage failed: Unknown Error"),
        (LOST, DeviceLost, "GPU is lost"),
        (16, DeviceLost, "GPU reset"),
    ],
)
def test_each_refusal_has_its_type_and_words(
    stub_nvml: StubNvml, code: int, error: type[Exception], says: str
) -> None:
    gpu = nvml.call("nvmlDeviceGetHandleByIndex", 0)
    stub_nvml.fault("nvmlDeviceGetPowerUsage", rc=code)
    with pytest.raises(error, match=says) as caught:
        nvml.call("nvmlDeviceGetPowerUsage", gpu)
    assert type(caught.value) is error


def test_what_the_driver_lacks_is_not_asked_twice(stub_nvml: StubNvml) -> None:
    gpu = nvml.call("nvmlDeviceGetHandleByIndex", 0)
    stub_nvml.fault("nvmlDeviceGetPowerUsage", rc=FUNCTION_NOT_FOUND)
    for _ in range(3):
        with pytest.raises(nvml.FunctionMissing):
            nvml.call("nvmlDeviceGetPowerUsage", gpu)
    assert stub_nvml.calls("nvmlDeviceGetPowerUsage") == 1


def test_what_the_binding_lacks_is_told(stub_nvml: StubNvml) -> None:
    with pytest.raises(nvml.FunctionMissing, match="update it"):
        nvml.call("nvmlDeviceGetTheWeather")


def test_a_name_may_hold_any_bytes(stub_nvml: StubNvml) -> None:
    stub_nvml.set(0, name=b"H200 \xff\xfe")
    [probe] = NvmlSource().open().probes
    assert probe.device.name == "H200 \ufffd\ufffd"


def test_a_forked_child_starts_nvml_of_its_own(make_stub_nvml) -> None:
    stub = make_stub_nvml("h200", "a100")
    counts = run(
        "import os, json\n"
        "from warpbook_monitors.nvml import gate as nvml\n"
        "count = lambda: nvml.call('nvmlDeviceGetCount')\n"
        "before = count()\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(w, str(count()).encode()); os._exit(0)\n"
        "os.wait()\n"
        "print(json.dumps([before, int(os.read(r, 9)), count()]))",
        stub,
    )
    assert counts == [2, 2, 2]
    assert stub.calls("nvmlInitWithFlags") == 2


def test_an_old_driver_gives_what_it_can(tmp_path: Path) -> None:
    stub = StubNvml(build(tmp_path / "old", "-DOLD_DRIVER"), tmp_path / "state", "h200")
    stub.set(0, memory_used_bytes=1_000, clocks_event_reasons=4)
    device, values = run(
        "import time, json, msgspec\n"
        "from warpbook_monitors.nvml.probe import NvmlSource\n"
        "[probe] = NvmlSource().open().probes\n"
        "print(json.dumps([msgspec.to_builtins(probe.device), probe.read(0)]))",
        stub,
    )
    metrics = {metric["name"]: metric for metric in device["metrics"]}
    reading = dict(zip(metrics, values, strict=True))
    # without the newer call, what the driver reserved can't be told apart
    assert reading["memory_used_bytes"] == 1_000 + 644939776
    assert reading["clocks_event_reasons"] == 4
    assert reading["sm_active_ratio"] is None
    assert metrics["sm_active_ratio"]["state"] == "not_supported"
    assert "driver is too old" in metrics["sm_active_ratio"]["why"]
    assert "memory_reserved_bytes" not in device["facts"]
