"""Which processes hold memory on a GPU: NVML's list, joined with the system's.

NVML tells a PID and a size, and not always truly: in a container the PIDs may be the
host's, some drivers tell 0 or all bits set, and sizes may be kept secret. What can't
be is unknown here, never a number.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import psutil

from warpbook_monitors.frames import Device
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gate import FunctionMissing, NotSupported, NvmlError, call
from warpbook_monitors.plain_text import bounded

Handle = Any

#: what drivers say in the place of a number: nothing, or all bits set
_NO_NUMBER = (None, 0, 2**32 - 1, 2**64 - 1)
#: the PID namespace of the machine itself, a constant of Linux (PROC_PID_INIT_INO)
_HOST_NAMESPACE = "pid:[4026531836]"
#: a start time is read from ticks of the system's clock
_CLOCK_TOLERANCE_S = 2.0
_MAX_KNOWN = 4096

#: by kind: compute and graphics contexts, and clients of CUDA's multi-process service
_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)


@dataclass(frozen=True)
class GpuProcess:
    """A process on a GPU, as NVML tells it."""

    #: None where NVML tells none that can be
    pid: int | None
    #: None where NVML tells none
    used_bytes: int | None
    #: of the MIG instance that it runs on
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True)
class DeviceProcesses:
    """All processes on a device at one moment."""

    processes: tuple[GpuProcess, ...]
    #: of the whole device; None where NVML does not count it
    used_bytes: int | None
    #: what keeps the list from being whole, in words
    notes: tuple[str, ...] = ()
    #: whether every list could be read; else an empty one says nothing
    is_listed: bool = True


_NOT_NVMLS = DeviceProcesses(
    (), None, ("The source of this GPU does not list processes.",), is_listed=False
)


@dataclass(frozen=True)
class SystemProcess:
    """A process, as the system tells it. The name is the process's own choice."""

    pid: int
    name: str
    #: None where the system does not tell
    user: str | None
    #: whether it runs as the user who asks
    is_ours: bool
    #: Unix time; with the PID it names a process for good
    started_s: float | None
    #: PIDs of its parent, its parent's parent, ...; empty unless it is ours
    ancestors: tuple[int, ...] = ()


def read_processes(device: Device) -> DeviceProcesses:
    """List the processes of a GPU, or of an instance of one.

    Raises:
        Unavailable: NVML can't be used.
        DeviceLost: the GPU is gone.
        NvmlError: NVML does not give the device, or no list at all.
    """
    if device.kind == "gpu" and device.index is None:
        return _NOT_NVMLS
    gpu = _handle(device)
    notes: list[str] = []
    by_key: dict[tuple[int | None, int | None, int | None], GpuProcess] = {}
    nameless: list[GpuProcess] = []
    for name in _LISTS:
        for listed in _listed(gpu, name, notes):
            process = _process(listed, device)
            if process.pid is None:
                nameless.append(process)
                continue
            key = (process.pid, process.gpu_instance, process.compute_instance)
            # one that computes and draws is in two lists, with the same memory
            before = by_key.get(key)
            if before is None or before.used_bytes is None:
                by_key[key] = process
    is_listed = not notes
    used_bytes = _used_bytes(gpu, notes)
    if device.facts.get("mig_mode") == "enabled":
        notes.append("MIG is on: the holders of memory are listed for each instance.")
    processes = (*by_key.values(), *nameless)
    return DeviceProcesses(processes, used_bytes, tuple(notes), is_listed)


class ProcessTable:
    """Describes processes, and remembers each as long as it runs.

    What a process was started by is asked once, so it is known also when the parent
    has ended. Several threads may ask.
    """

    def __init__(self) -> None:
        self._known: dict[int, SystemProcess] = {}

    def describe(self, pid: int, listed_s: float) -> SystemProcess | None:
        """Say whose a PID is; None if it is not, or no longer, a process here.

        Args:
            pid: as NVML told it.
            listed_s: Unix time at which NVML listed it. A process that began later
                has taken the PID over, and is not the one that NVML meant.
        """
        try:
            process = psutil.Process(pid)
            started_s = process.create_time()
            if started_s > listed_s + _CLOCK_TOLERANCE_S:
                return None
            known = self._known.get(pid)
            if known is None or known.started_s != started_s:
                known = _describe(process, started_s)
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[pid] = known
            return known
        except psutil.AccessDenied:
            pass
        except psutil.NoSuchProcess:
            # /proc may hide the processes of others
            if not psutil.pid_exists(pid):
                return None
        return SystemProcess(pid, "unknown", None, is_ours=False, started_s=None)


def environment(pid: int) -> dict[str, str]:
    """Give the environment that a process began with; empty if it may not be read."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def has_own_pids() -> bool:
    """Whether PIDs here are other numbers than on the host, as in a container."""
    try:
        return os.readlink("/proc/self/ns/pid") != _HOST_NAMESPACE
    except OSError:
        return False


def _handle(device: Device) -> Handle:
    uuid = device.facts.get("uuid", device.id.partition(":")[2])
    if str(uuid).startswith(("GPU-", "MIG-")):
        return call("nvmlDeviceGetHandleByUUID", str(uuid).encode())
    return call("nvmlDeviceGetHandleByIndex", device.index)


def _listed(gpu: Handle, name: str, notes: list[str]) -> list[Any]:
    try:
        return list(call(name, gpu))
    except FunctionMissing as error:
        # without a driver that knows them there are no graphics or MPS lists
        if name == _LISTS[0]:
            notes.append(f"The holders of memory can't be listed. {error}")
    except NotSupported:
        if name == _LISTS[0]:
            notes.append("This GPU does not list its processes.")
    except NvmlError as error:
        notes.append(f"Some holders of memory may be missing. {error}")
    return []


def _process(listed: Any, device: Device) -> GpuProcess:
    total = device.facts.get("memory_total_bytes")
    used = _number(listed.usedGpuMemory)
    if used is not None and isinstance(total, (int, float)) and used > total:
        used = None
    pid = _number(listed.pid)
    return GpuProcess(
        pid if pid is None or pid < 2**31 else None,
        used,
        _instance(getattr(listed, "gpuInstanceId", None)),
        _instance(getattr(listed, "computeInstanceId", None)),
    )


def _number(value: Any) -> int | None:
    return None if value in _NO_NUMBER else int(value)


def _instance(value: Any) -> int | None:
    # the first instance has the number 0
    return 0 if value == 0 else _number(value)


def _used_bytes(gpu: Handle, notes: list[str]) -> int | None:
    ways: tuple[str, ...] = (nvml.MEMORY_V2, "nvmlDeviceGetMemoryInfo")
    for name in ways:
        try:
            return int(call(name, gpu).used)
        except NotSupported:
            continue
        except NvmlError as error:
            notes.append(f"The total memory in use is not known. {error}")
            return None
    notes.append(
        "NVML does not count the total memory of this GPU, as where GPU and CPU share "
        "one memory."
    )
    return None


def _describe(process: psutil.Process, started_s: float) -> SystemProcess:
    is_ours = process.uids().effective == os.geteuid()
    return SystemProcess(
        pid=process.pid,
        name=_name(process, is_ours),
        user=bounded(process.username()),
        is_ours=is_ours,
        started_s=started_s,
        ancestors=tuple(parent.pid for parent in process.parents()) if is_ours else (),
    )


def _name(process: psutil.Process, is_ours: bool) -> str:
    """Name a program; of our own Python programs, also what they run."""
    name = process.name()
    if is_ours and name.startswith("python"):
        # never more of the command line: it may hold a password
        words = process.cmdline()[1:]
        if words[:1] == ["-m"] and len(words) > 1:
            name = f"{name} -m {words[1]}"
        elif words and not words[0].startswith("-"):
            name = f"{name} {PurePath(words[0]).name}"
    return bounded(name)
