"""Accounts of a hub's service and grader, which no learner has."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys

from warpbook.cli.output import CommandError

#: what a plan calls them, and their names
ACCOUNTS = {"service_user": "warpbook-hub", "grader_user": "warpbook-grader"}


def service_accounts() -> dict[str, str]:
    """Give the accounts of service and grader, which must be there.

    Raises:
        CommandError: they are not, or nobody could take them on.
    """
    if os.geteuid() != 0:
        raise CommandError(
            "--users system starts each server as its learner, which takes root."
        )
    missing = []
    for name in ACCOUNTS.values():
        try:
            pwd.getpwnam(name)
        except KeyError:
            missing.append(name)
    if missing:
        options = "--system --create-home --shell /usr/sbin/nologin"
        lines = [f"useradd {options} {name}" for name in missing]
        raise CommandError(
            "The course's database and the grading need accounts of their own, which "
            f"no learner has. Make them once: {' && '.join(lines)}"
        )
    for name in ACCOUNTS.values():
        _check_python(name)
    return dict(ACCOUNTS)


def _check_python(user: str) -> None:
    """Refuse a Python that other accounts can't run, such as one in root's home.

    Raises:
        CommandError: the account can't run it.
    """
    account = pwd.getpwnam(user)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "import warpbook, warpbook_labs"],
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
        )
        can_run = done.returncode == 0
    except OSError:
        can_run = False
    if not can_run:
        raise CommandError(
            f"The account {user} can't run {sys.executable} with warpbook in it, and "
            "learners could not either. Install it where everybody may read it: "
            "/usr/bin/python3 -m venv /opt/warpbook"
        )
