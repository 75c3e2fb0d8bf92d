"""What a process is part of, as its cgroup's path tells it.

The path is the kernel's. What a user may name is what lies below the cgroup that was
delegated to them, so patterns begin at the root and end before that.
"""

from __future__ import annotations

import re
from pathlib import Path

from warpbook_monitors.holders.shares import Workload
from warpbook_monitors.plain_text import bounded

_MOST_BYTES = 16_384
#: /slurm/uid_7/job_42 (version 1), /system.slice/slurmstepd.scope/job_42 (version 2)
_SLURM = re.compile(
    r"^/(?:slurm[^/]*/uid_\d+|system\.slice/[^/]*slurmstepd\.scope)/job_(\d{1,12})(?=/|$)"
)
#: its dashes are underscores where systemd made the slice
_POD = re.compile(
    r"^/kubepods(?:\.slice)?/"
    r"(?:(?:kubepods-)?(?:burstable|besteffort)(?:\.slice)?/)?"
    r"(?:kubepods-(?:burstable-|besteffort-)?)?"
    r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?=\.slice|/|$)"
)
_CONTAINER = re.compile(
    r"^/(?:docker|system\.slice|machine\.slice)/"
    r"(?:[a-z]+-)?([0-9a-f]{64})(?:\.scope)?(?=/|$)"
)
#: the first that is no slice: a session, or all services of a user together
_UNIT = re.compile(r"^/(?:[^/]+\.slice/)+([^/]+\.(?:service|scope))(?=/|$)")


def workload_of(pid: int) -> Workload:
    """Tell what a process is part of; nothing where its cgroup can't be read."""
    try:
        with Path(f"/proc/{pid}/cgroup").open("rb") as file:
            text = file.read(_MOST_BYTES).decode(errors="replace")
    except OSError:
        return Workload()
    return workload_in(text)


def workload_in(cgroups: str) -> Workload:
    """Read `/proc/PID/cgroup`: lines of `number:controllers:path`."""
    fields = [line.split(":", 2) for line in cgroups.splitlines()]
    paths = [parts[2] for parts in fields if len(parts) == 3]
    for path in paths:
        if job := _SLURM.match(path):
            return Workload("slurm", job[1])
        if pod := _POD.match(path):
            return Workload("kubernetes", pod[1].replace("_", "-"))
        if container := _CONTAINER.match(path):
            return Workload("container", container[1][:12])
    for path in paths:
        if unit := _UNIT.match(path):
            return Workload("systemd", bounded(unit[1]))
    return Workload()
