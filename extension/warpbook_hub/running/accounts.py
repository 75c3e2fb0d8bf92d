"""Starts processes as other accounts of the machine."""

from __future__ import annotations

import os
import pwd
from typing import Any


def as_user(name: str) -> dict[str, Any]:
    """Say to `subprocess` whose account a process has; ours where it has no name."""
    if not name:
        return {}
    account = pwd.getpwnam(name)
    groups = os.getgrouplist(name, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups}
