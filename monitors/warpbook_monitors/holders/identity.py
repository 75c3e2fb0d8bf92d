"""Whose a process is: what the kernel says of it, and what it says of itself."""

from __future__ import annotations

import pwd
import re
import time
from pathlib import Path

import psutil

from warpbook_monitors.holders.shares import Holder, Workload
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


HUB_USER = "JUPYTERHUB_USER"
_MOST_ENVIRONMENT_BYTES = 1 << 18
#: a name that a hub gives; anything else is no claim
_MOST_NAME = 100
_MOST_KNOWN = 4096
_CLOCK_TOLERANCE_S = 2.0
NOBODY_KNOWN = Holder(None, "", "", Workload())


class Identities:
    """Tells whose processes are, and remembers each as long as it runs."""

    def __init__(self) -> None:
        #: by PID, with the time at which the process was started
        self._known: dict[int, tuple[float, Holder]] = {}

    def holder(self, pid: int, listed_s: float) -> Holder:
        """Say whose a process is.

        Args:
            pid: as the driver told it.
            listed_s: Unix time of that; what began later is another process.
        """
        try:
            process = psutil.Process(pid)
            started_s = process.create_time()
            # the owner of its folder in /proc is root where it runs a setuid program
            uid = process.uids().real
        except (psutil.Error, OSError):
            return NOBODY_KNOWN
        if started_s > listed_s + _CLOCK_TOLERANCE_S:
            return NOBODY_KNOWN
        known = self._known.get(pid)
        if known is not None and known[0] == started_s:
            return known[1]
        holder = Holder(uid, _account(uid), _claimed_user(pid), workload_of(pid))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        # an environment is the program's own only once it has begun
        if time.time() - started_s > _CLOCK_TOLERANCE_S:
            self._known[pid] = (started_s, holder)
        return holder


def _account(uid: int) -> str:
    try:
        return bounded(pwd.getpwuid(uid).pw_name, _MOST_NAME)
    except (KeyError, OverflowError):
        return ""


def _claimed_user(pid: int) -> str:
    """Give what the process says whose server it is of; empty if it may not be read."""
    try:
        with Path(f"/proc/{pid}/environ").open("rb") as file:
            words = file.read(_MOST_ENVIRONMENT_BYTES).split(b"\0")
    except OSError:
        return ""
    prefix = f"{HUB_USER}=".encode()
    for word in words:
        if word.startswith(prefix):
            name = word[len(prefix) :].decode(errors="replace")
            return name if len(name) <= _MOST_NAME and name.isprintable() else ""
    return ""
