"""Whose memory it is: from PIDs to notebooks, programs and other users."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from msgspec.structs import replace

from warpbook.protocol import Allocator, DeviceHolders, Holder
from warpbook.server.stream.kernels import RunningKernel
from warpbook_monitors import units
from warpbook_monitors.frames import Device
from warpbook_monitors.nvml.processes import (
    DeviceProcesses,
    GpuProcess,
    ProcessTable,
    SystemProcess,
    environment,
    has_own_pids,
)
from warpbook_monitors.plain_text import bounded

#: a node may be shared by many; views show a few
_MAX_HOLDERS = 200


class Attribution:
    """Says who holds memory, and of other users only what the policy allows."""

    def __init__(self, names_other_users: bool, hub_user: str | None) -> None:
        """Take the policy, and whose server this is under a hub, if there is one."""
        self._names_other_users = names_other_users
        self._hub_user = hub_user
        self._table = ProcessTable()

    def attribute(
        self, listed: DeviceProcesses, listed_s: float, kernels: Sequence[RunningKernel]
    ) -> DeviceHolders:
        """Name the holders of one device, most first."""
        of_kernels: dict[str, list[GpuProcess]] = {}
        holders: list[Holder] = []
        others: list[tuple[GpuProcess, SystemProcess]] = []
        unknown: list[GpuProcess] = []
        by_pid = {kernel.pid: kernel for kernel in kernels if kernel.pid}
        for process in listed.processes:
            owner = (
                None
                if process.pid is None
                else self._table.describe(process.pid, listed_s)
            )
            if owner is None:
                unknown.append(process)
                continue
            kernel = self._kernel_of(owner, by_pid, listed_s)
            if kernel is not None:
                of_kernels.setdefault(kernel.id, []).append(process)
            elif owner.is_ours and self._is_same_hub_user(owner):
                holders.append(self._program(process, owner))
            else:
                others.append((process, owner))
        holders += [
            self._kernel(kernel, of_kernels[kernel.id])
            for kernel in kernels
            if kernel.id in of_kernels
        ]
        if others:
            holders += self._others(others)
        holders.sort(key=lambda holder: holder.used_bytes or 0, reverse=True)
        notes = [*listed.notes, *_notes(unknown)]
        if len(holders) > _MAX_HOLDERS:
            notes.append(f"{len(holders) - _MAX_HOLDERS} more hold less each.")
            holders = holders[:_MAX_HOLDERS]
        return DeviceHolders(
            tuple(holders), _unattributed(listed.used_bytes, holders), tuple(notes)
        )

    def _kernel_of(
        self, owner: SystemProcess, kernels: dict[int, RunningKernel], listed_s: float
    ) -> RunningKernel | None:
        """Find the kernel that is, or started, a process."""
        for pid in (owner.pid, *owner.ancestors):
            started = self._table.describe(pid, listed_s) if pid in kernels else None
            # one that began after its child has only taken over the parent's PID
            if started and (started.started_s or 0) <= (owner.started_s or 0):
                return kernels[pid]
        return None

    def _is_same_hub_user(self, owner: SystemProcess) -> bool:
        """Whether a process of this system user is also of this hub user.

        Hubs may run everybody's servers as one system user. Then whoever neither
        descends from this server nor says whose it is may be anybody's.
        """
        if self._hub_user is None or owner.user == self._hub_user:
            return True
        named = environment(owner.pid).get("JUPYTERHUB_USER")
        if named is not None:
            return named == self._hub_user
        return os.getpid() in owner.ancestors

    def _kernel(self, kernel: RunningKernel, processes: Sequence[GpuProcess]) -> Holder:
        return Holder(
            kind="kernel",
            name=kernel.name,
            used_bytes=_sum(processes),
            pids=_pids(processes),
            kernel_id=kernel.id,
            user=self._hub_user,
            execution_state=kernel.execution_state,
            idle_s=kernel.idle_s,
        )

    def _program(self, process: GpuProcess, owner: SystemProcess) -> Holder:
        name = owner.name
        # a kernel of another Jupyter server, or what one started
        notebook = environment(owner.pid).get("JPY_SESSION_NAME")
        if notebook:
            name = f"{name}, from {bounded(PurePath(notebook).name)}"
        return Holder(
            kind="program",
            name=name,
            used_bytes=process.used_bytes,
            pids=(owner.pid,),
            user=self._hub_user or owner.user,
        )

    def _others(
        self, others: Sequence[tuple[GpuProcess, SystemProcess]]
    ) -> Iterable[Holder]:
        if not self._names_other_users:
            processes = [process for process, _ in others]
            return [Holder("other_users", "other users", _sum(processes))]
        return [
            Holder(
                kind="other_users",
                name=owner.name,
                used_bytes=process.used_bytes,
                pids=(owner.pid,),
                user=self._other_name(owner),
            )
            for process, owner in others
        ]

    def _other_name(self, owner: SystemProcess) -> str | None:
        hub_user = environment(owner.pid).get("JUPYTERHUB_USER")
        return owner.user if hub_user is None else bounded(hub_user)


def with_allocators(
    holders_now: DeviceHolders,
    device: Device,
    allocators: dict[str, tuple[Allocator, ...]],
) -> DeviceHolders:
    """Add what torch counted in each kernel, where it told which GPU it meant."""
    holders = []
    for holder in holders_now.holders:
        for allocator in allocators.get(holder.kernel_id or "", ()):
            if is_device(device, allocator.uuid):
                holder = replace(
                    holder,
                    allocated_bytes=allocator.allocated_bytes,
                    reserved_bytes=allocator.reserved_bytes,
                )
        holders.append(holder)
    return replace(holders_now, holders=tuple(holders))


def is_device(device: Device, uuid: str | None) -> bool:
    """Whether a UUID, as CUDA or NVML writes it, is this device's."""
    if not uuid:
        return False
    known = str(device.facts.get("uuid", device.id.partition(":")[2]))
    return _plain(uuid) == _plain(known)


def _plain(uuid: str) -> str:
    # CUDA leaves NVML's "GPU-" out
    return uuid.lower().removeprefix("gpu-").removeprefix("mig-")


def _sum(processes: Sequence[GpuProcess]) -> int | None:
    """Add up; unknown if one of them is."""
    known = [
        process.used_bytes for process in processes if process.used_bytes is not None
    ]
    return sum(known) if len(known) == len(processes) else None


def _pids(processes: Sequence[GpuProcess]) -> tuple[int, ...]:
    return tuple(
        sorted({process.pid for process in processes if process.pid is not None})
    )


def _unattributed(used_bytes: int | None, holders: Sequence[Holder]) -> int | None:
    known = [holder.used_bytes for holder in holders if holder.used_bytes is not None]
    if used_bytes is None or len(known) < len(holders):
        return None
    # the two were not read at the same instant
    return max(used_bytes - sum(known), 0)


def _notes(unknown: Sequence[GpuProcess]) -> Iterable[str]:
    """Say what can't be attributed, and why."""
    nameless = [process for process in unknown if process.pid is None]
    if nameless:
        yield f"The driver reports no PID for {_amount(nameless)}."
    absent = [process for process in unknown if process.pid is not None]
    if absent and has_own_pids():
        yield (
            f"This is a container with PIDs of its own, and the driver reports PIDs "
            f"that are not among them, for {_amount(absent)}: they may be anybody's, "
            "also yours. Their memory counts as unattributed."
        )
    elif absent:
        yield (
            f"The driver lists {_amount(absent)} that can't be found here: just "
            "ended, or in a virtual machine or a container."
        )


def _amount(processes: Sequence[GpuProcess]) -> str:
    count = "a process" if len(processes) == 1 else f"{len(processes)} processes"
    held = _sum(processes)
    return count if held is None else f"{count} with {units.size(held)}"
