"""`python -m warpbook_hub.running.isolation PLAN`: tries what learners must not do.

As root it tries in turn as each account that may log in; else as the account that runs
it. Nothing is changed, and nothing that could be read is kept.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
from msgspec import Struct

from warpbook_hub.running.plan import HubPlan, read_plan

_FIRST_LEARNER = 1000
_NOBODY = 65534
_MOST_ACCOUNTS = 500
_MOST_LEAKS = 20
#: of processes that have secrets in their environment or memory
_SECRETIVE = (
    "warpbook_hub.service",
    "warpbook_hub.grader",
    "warpbook_hub.grader.cluster",
    "warpbook_hub.keeper",
    "jupyterhub",
)


class Trial(Struct, frozen=True):
    """What was tried, and what could be done."""

    #: accounts as which it was tried
    accounts: tuple[str, ...]
    #: processes of the hub that were looked at
    processes: int
    #: in words; none where it is isolated
    leaks: tuple[str, ...]


def try_all(plan: HubPlan) -> Trial:
    processes = _processes()
    if os.geteuid() != 0:
        own = pwd.getpwuid(os.getuid())
        leaks = list(_leaks(plan, own, processes, _homes(own.pw_uid)))
        return Trial((own.pw_name,), len(processes), tuple(leaks[:_MOST_LEAKS]))
    hub_accounts = {0, plan.user_id(plan.service_user), plan.user_id(plan.grader_user)}
    accounts = [
        account
        for account in pwd.getpwall()
        if account.pw_uid not in hub_accounts
        and (_FIRST_LEARNER <= account.pw_uid < _NOBODY or account.pw_name == "nobody")
    ][:_MOST_ACCOUNTS]
    leaks = []
    for account in accounts:
        leaks += _as_account(plan, account, processes)
    names = tuple(account.pw_name for account in accounts)
    return Trial(names, len(processes), tuple(leaks[:_MOST_LEAKS]))


def _as_account(
    plan: HubPlan, account: pwd.struct_passwd, processes: list[int]
) -> list[str]:
    """Try in a child that has become the account."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            os.initgroups(account.pw_name, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            leaks = list(_leaks(plan, account, processes, _homes(account.pw_uid)))
            with open(written, "wb") as answer:
                answer.write(msgspec.json.encode(leaks[:_MOST_LEAKS]))
            status = 0
        finally:
            # nothing of the parent's is done twice
            os._exit(status)
    os.close(written)
    with open(read, "rb") as answer:
        output = answer.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        return [f"{account.pw_name}: it could not be tried"]
    return msgspec.json.decode(output, type=list[str])


def _leaks(
    plan: HubPlan, account: pwd.struct_passwd, processes: list[int], homes: list[Path]
) -> Iterator[str]:
    """Tell what an account can do that no learner must."""
    who = account.pw_name
    secrets = [
        plan.hub_folder / "hub.sqlite",
        plan.course_folder / "database.url",
        plan.hub_folder / "cookie_secret",
        plan.token_file,
        plan.keeper_token_file,
        plan.course_folder / "hub.db",
        plan.course_folder / "cookie_secret",
    ]
    secrets += [Path(plan.ray_token_file)] if plan.ray_token_file else []
    for path in secrets:
        if os.access(path, os.R_OK) or os.access(path, os.W_OK):
            yield f"{who} can open {path}"
    folders = [plan.hub_folder, plan.course_folder]
    folders += [Path(plan.vault)] if plan.vault else []
    for folder in (*folders, *homes):
        if os.access(folder, os.R_OK) or os.access(folder, os.W_OK):
            yield f"{who} can look into {folder}"
    if os.access(plan.place, os.W_OK):
        yield f"{who} can change {plan.place}"
    for pid in processes:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            file.read(1)
            yield f"{who} can read the environment of process {pid}"
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            yield f"{who} can send signals to process {pid}"


def _processes() -> list[int]:
    """Find the processes of hubs on this machine; not the servers of learners."""
    pids = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(word in _SECRETIVE for word in words):
            pids.append(process.pid)
    return pids


def _homes(uid: int) -> list[Path]:
    """Give the folders of other learners."""
    return [
        Path(account.pw_dir)
        for account in pwd.getpwall()
        if _FIRST_LEARNER <= account.pw_uid < _NOBODY and account.pw_uid != uid
    ][:_MOST_ACCOUNTS]


def main() -> int:
    """Try all, and write what came of it as JSON."""
    trial = try_all(read_plan(Path(sys.argv[1])))
    sys.stdout.buffer.write(msgspec.json.encode(trial))
    return 0


if __name__ == "__main__":
    sys.exit(main())
