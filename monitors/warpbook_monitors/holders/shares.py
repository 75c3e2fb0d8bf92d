"""Who holds a GPU, and what each holder had of it in an interval."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: of one GPU; the last one stands for all others
MOST_HOLDERS = 32

WorkloadKind = Literal["", "slurm", "kubernetes", "container", "systemd"]


class Workload(Struct, frozen=True):
    """What a process is part of, by its cgroup."""

    kind: WorkloadKind = ""
    #: number of the Slurm job, UID of the pod, id of the container, name of the unit
    name: str = ""


class Holder(Struct, frozen=True):
    """Whose a process is: uid and cgroup are the kernel's, `hub_user` is a claim."""

    #: None where the process can't be found on the node
    uid: int | None
    #: the node's name of the uid; empty if it has none
    account: str
    #: JUPYTERHUB_USER of the process's environment, which the process chose itself
    hub_user: str
    workload: Workload


class HolderShare(Struct, frozen=True):
    """What a holder had of a GPU in an interval; all its processes together."""

    holder: Holder
    processes: int
    #: None where the driver does not tell
    memory_bytes: int | None
    held_ms: int
    #: time in which its kernels ran; None where the driver does not tell
    busy_ms: int | None
    #: None where the GPU does not count its energy
    energy_mj: int | None
    #: at the end of the interval
    is_there: bool


class GpuShare(Struct, frozen=True):
    """One GPU in an interval."""

    #: its UUID
    gpu: str
    #: None where the GPU does not count its energy
    energy_mj: int | None
    holders: tuple[HolderShare, ...]
