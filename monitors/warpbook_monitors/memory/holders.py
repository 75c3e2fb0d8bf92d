"""Who holds the memory of a GPU, as far as NVML and the system tell."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Holder(Struct, frozen=True):
    """One who holds memory: a kernel, another program, or all other users' together."""

    kind: Literal["kernel", "program", "other_users"]
    #: the notebook's path, the program's name, or "other users"
    name: str
    #: None where the driver does not tell
    used_bytes: int | None
    #: empty for other users, unless the policy shows them
    pids: tuple[int, ...] = ()
    kernel_id: str | None = None
    #: the JupyterHub or system user; None where the policy hides it
    user: str | None = None
    #: of the kernel, as its server knows it: "idle", "busy", ...
    execution_state: str | None = None
    #: how long the kernel has run nothing; None while it does
    idle_s: float | None = None
    #: what torch counts in that kernel; None where it does not report
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None


class DeviceHolders(Struct, frozen=True):
    """All who hold memory of one GPU, most first."""

    holders: tuple[Holder, ...]
    #: used, but by nobody that is listed; None where that can't be known
    unattributed_bytes: int | None
    #: what keeps the list from being whole, in words (containers, MIG, permission)
    notes: tuple[str, ...] = ()
