"""Processes on a GPU: NVML's list on the stub library, joined with this system's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.stub_nvml import (
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    StubNvml,
)
from warpbook_monitors.errors import DeviceLost
from warpbook_monitors.frames import Device
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.nvml.processes import (
    ProcessTable,
    environment,
    has_own_pids,
    read_processes,
)

GIB = 2**30
COMPUTE, GRAPHICS, MPS = 1, 2, 4
LIST = "nvmlDeviceGetComputeRunningProcesses_v3"


@pytest.fixture
def stub(make_stub_nvml: Callable[..., StubNvml]) -> StubNvml:
    return make_stub_nvml("h200")


@pytest.fixture
def gpu(stub: StubNvml) -> Device:
    return NvmlSource().open().probes[0].device


@contextmanager
def process(*command: str | Path, **kwargs: object) -> Iterator[int]:
    child = subprocess.Popen(command, **kwargs)
    try:
        yield child.pid
    finally:
        child.kill()
        child.wait()


def held(gpu: Device) -> list[tuple[int | None, int | None]]:
    return [(one.pid, one.used_bytes) for one in read_processes(gpu).processes]


def test_all_lists_are_read(gpu: Device, stub: StubNvml) -> None:
    stub.set(0, memory_used_bytes=6 * GIB)
    for kinds in (COMPUTE, GRAPHICS, MPS):
        stub.hold(0, (12, GIB), (13, 3 * GIB), kinds=kinds)
        assert held(gpu) == [(12, GIB), (13, 3 * GIB)]
    processes = read_processes(gpu)
    assert (processes.used_bytes, processes.notes) == (6 * GIB, ())


def test_who_is_in_two_lists_counts_once(gpu: Device, stub: StubNvml) -> None:
    stub.hold(0, (12, GIB), kinds=COMPUTE | GRAPHICS)
    assert held(gpu) == [(12, GIB)]


@pytest.mark.parametrize("pid", [0, 2**32 - 1, 2**31 + 5])
def test_a_pid_that_can_not_be_is_unknown(
    gpu: Device, stub: StubNvml, pid: int
) -> None:
    stub.hold(0, (pid, GIB))
    assert held(gpu) == [(None, GIB)]


@pytest.mark.parametrize("size", [0, 2**32 - 1, 2**64 - 1, 2**60])
def test_a_size_that_can_not_be_is_unknown(
    gpu: Device, stub: StubNvml, size: int
) -> None:
    stub.hold(0, (12, size))
    assert held(gpu) == [(12, None)]


def test_a_gpu_that_shares_the_hosts_memory_says_so(
    gpu: Device, stub: StubNvml
) -> None:
    for call in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        stub.fault(call, rc=NOT_SUPPORTED)
    stub.hold(0, (12, GIB))
    processes = read_processes(gpu)
    assert processes.used_bytes is None
    assert "share" in processes.notes[0]
    assert [one.used_bytes for one in processes.processes] == [GIB]


@pytest.mark.parametrize(
    ("rc", "words"),
    [
        (NO_PERMISSION, "an administrator may"),
        (NOT_SUPPORTED, "does not list its processes"),
        (FUNCTION_NOT_FOUND, "driver is too old"),
    ],
)
def test_a_list_that_is_refused_is_told(
    gpu: Device, stub: StubNvml, rc: int, words: str
) -> None:
    stub.fault(LIST, rc=rc)
    processes = read_processes(gpu)
    assert processes.processes == ()
    assert words in " ".join(processes.notes)


def test_without_graphics_there_is_nothing_to_say(gpu: Device, stub: StubNvml) -> None:
    for call in ("Graphics", "MPSCompute"):
        name = f"nvmlDeviceGet{call}RunningProcesses_v3"
        stub.fault(name, rc=NOT_SUPPORTED)
    assert read_processes(gpu).notes == ()


def test_a_lost_gpu_is_lost(gpu: Device, stub: StubNvml) -> None:
    stub.set(0, rc=LOST)
    with pytest.raises(DeviceLost):
        read_processes(gpu)


def test_our_own_process_is_described() -> None:
    described = ProcessTable().describe(os.getpid(), time.time())
    assert described is not None
    assert described.is_ours
    assert os.getppid() in described.ancestors
    assert described.started_s is not None
    assert described.started_s < time.time()


def test_a_python_program_is_named_by_its_script_and_no_more(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time; print(flush=True); time.sleep(600)")
    command = [sys.executable, script, "--password", "secret"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        described = ProcessTable().describe(child.pid, time.time())
        child.kill()
    assert described is not None
    assert described.name.startswith("python")
    assert described.name.endswith(" train.py")


def test_another_users_process_is_not_ours() -> None:
    if os.geteuid() == 0:
        with process("sleep", "600", user=65534) as pid:
            described = ProcessTable().describe(pid, time.time())
    else:
        described = ProcessTable().describe(1, time.time())
    assert described is not None
    assert not described.is_ours
    assert described.ancestors == ()


def test_a_pid_that_was_taken_over_is_nobodys() -> None:
    table = ProcessTable()
    with process("sleep", "600") as pid:
        assert table.describe(pid, time.time()) is not None
        assert table.describe(pid, time.time() - 60) is None
    assert table.describe(pid, time.time()) is None


def test_what_started_a_process_is_remembered_after_it_ended() -> None:
    table = ProcessTable()
    script = (
        "import subprocess; child = subprocess.Popen(['sleep', '600']); "
        "print(child.pid, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        table.describe(child, time.time())
        parent.kill()
    described = table.describe(child, time.time())
    os.kill(child, 9)
    assert described is not None
    assert parent.pid in described.ancestors


def test_a_pid_that_ended_is_nobodys() -> None:
    with process("sleep", "600") as pid:
        pass
    assert ProcessTable().describe(pid, time.time()) is None
    assert environment(pid) == {}


def test_a_name_can_not_steer_a_terminal(tmp_path: Path) -> None:
    program = tmp_path / "\x1b[31m\nred"
    shutil.copy(shutil.which("sleep") or "", program)
    with process(program, "600") as pid:
        time.sleep(0.2)
        described = ProcessTable().describe(pid, time.time())
    assert described is not None
    assert described.name == "?[31m?red"


IN_A_CONTAINER = """
import sys, time
from warpbook_monitors.nvml.processes import ProcessTable, has_own_pids
print(has_own_pids(), ProcessTable().describe(int(sys.argv[1]), time.time()))
"""


def test_in_a_container_the_pids_of_the_host_are_nobodys() -> None:
    alone = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0:
        alone[1:1] = ["--user", "--map-root-user"]
    completed = subprocess.run(
        [*alone, sys.executable, "-c", IN_A_CONTAINER, str(os.getpid())],
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout == "True None\n"
    host = "pid:[4026531836]"
    assert has_own_pids() == (os.readlink("/proc/self/ns/pid") != host)
