"""What an agent tells a hub: JSON by POST, with the node's token.

Amounts are whole milliseconds and millijoules, so that the hub adds them up exactly. An
interval has a stream and a number; the hub counts each pair once, however often it is
sent. Names are of somebody else's choice and are bounded here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from warpbook_monitors.frames import State

#: below the address of the hub's service
PREFIX = "node/v1/"
MOST_MESSAGE_BYTES = 512 << 10
MOST_INTERVALS = 20
MOST_GPUS = 32
MOST_HOLDERS = 32
#: of one holder on one GPU
MOST_PIDS = 32
#: of one interval
LONGEST_MS = 120_000
#: of one GPU in an interval: no board draws 10 kW
MOST_ENERGY_MJ = 10_000 * LONGEST_MS

_Name = Annotated[str, Meta(max_length=100)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Time = Annotated[int, Meta(ge=0, le=7_258_118_400_000)]
_Duration = Annotated[int, Meta(ge=0, le=LONGEST_MS)]
_Pid = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Energy = Annotated[int, Meta(ge=0, le=MOST_ENERGY_MJ)]

WorkloadKind = Literal["", "slurm", "kubernetes", "container", "systemd"]


class Workload(Struct, frozen=True, forbid_unknown_fields=True):
    """What a process is part of, by its cgroup."""

    kind: WorkloadKind = ""
    #: number of the Slurm job, UID of the pod, id of the container, name of the unit
    name: _Name = ""


class Holder(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose a process is: uid and cgroup are the kernel's, `hub_user` is a claim."""

    #: None where the process can't be found on the node
    uid: Annotated[int, Meta(ge=0, le=2**32)] | None
    #: the node's name of the uid; empty if it has none
    account: _Name
    #: JUPYTERHUB_USER of the process's environment, which the process chose itself
    hub_user: _Name
    workload: Workload


class HolderShare(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a holder had of a GPU in an interval; all its processes together."""

    holder: Holder
    processes: Annotated[int, Meta(ge=1, le=100_000)]
    #: None where the driver does not tell
    memory_bytes: _Count | None
    held_ms: _Duration
    #: time in which its kernels ran; None where the driver does not tell
    busy_ms: _Duration | None
    #: None where the GPU does not count its energy
    energy_mj: _Energy | None
    #: since when nothing of it ran, at the end; None while it works or if unknown
    idle_since_ms: _Time | None
    #: at the end of the interval
    is_there: bool
    #: its processes at the end, for a hub that asked for them; the first ones of many
    pids: Annotated[tuple[_Pid, ...], Meta(max_length=MOST_PIDS)] = ()


class GpuShare(Struct, frozen=True, forbid_unknown_fields=True):
    """One GPU in an interval."""

    gpu: _Name
    index: Annotated[int, Meta(ge=0, le=1000)] | None
    name: _Name
    #: at the end
    state: State
    why: Annotated[str, Meta(max_length=300)]
    #: time in which the GPU could be read
    read_ms: _Duration
    #: times in which anything ran, in multiprocessors and tensor pipes that worked;
    #: None where the GPU does not tell
    active_ms: _Duration | None
    sm_ms: _Duration | None
    tensor_ms: _Duration | None
    energy_mj: _Energy | None
    memory_used_bytes: _Count | None
    memory_total_bytes: _Count | None
    idle_since_ms: _Time | None
    #: whether the driver could list who has it at the end
    is_listed: bool
    #: who had it in the interval, as far as it was listed
    holders: Annotated[tuple[HolderShare, ...], Meta(max_length=MOST_HOLDERS)]


class Interval(Struct, frozen=True, forbid_unknown_fields=True):
    """Some seconds of a node, by its own clock."""

    #: drawn by each start of an agent
    stream: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    #: 1, 2, ... of the stream
    number: Annotated[int, Meta(ge=1, le=2**53)]
    from_ms: _Time
    to_ms: _Time
    gpus: Annotated[tuple[GpuShare, ...], Meta(max_length=MOST_GPUS)]


class Intervals(Struct, frozen=True, forbid_unknown_fields=True):
    """A batch, oldest first."""

    #: the sender's clock as it sends, by which the hub corrects the others
    sent_ms: _Time
    #: that the agent had to drop since its start, for want of room
    dropped: _Count
    intervals: Annotated[tuple[Interval, ...], Meta(max_length=MOST_INTERVALS)]


class Taken(Struct, frozen=True):
    """All intervals of the batch are on the hub's disk, or never will be."""

    #: that were not counted, being too old or impossible
    refused: int
    #: whether PIDs are to be told from now on
    wants_pids: bool = False
