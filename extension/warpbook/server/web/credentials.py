"""One credential for each kernel that this server starts, and for no other.

It is the kernel's id and what only this server can make of it, so nothing is kept, and
a kernel that is restarted has the same.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any


class Credentials:
    """Makes and checks them."""

    def __init__(self, is_running: Callable[[str], bool]) -> None:
        """Take who knows whether this server runs a kernel."""
        self.is_running = is_running
        self._key = secrets.token_bytes(32)

    def of(self, kernel_id: str) -> str:
        mac = hmac.new(self._key, kernel_id.encode(), hashlib.sha256)
        return f"{kernel_id}.{mac.hexdigest()}"

    def kernel(self, credential: str) -> str | None:
        """The kernel that has a credential; None where no kernel of ours has it."""
        kernel_id, _, _ = credential.rpartition(".")
        is_right = hmac.compare_digest(credential.encode(), self.of(kernel_id).encode())
        return kernel_id if is_right and self.is_running(kernel_id) else None


def give_each_kernel(
    manager: Any, environment: Callable[[str], Mapping[str, str]]
) -> None:
    """Have each kernel that a manager starts get an environment of its own.

    Args:
        manager: jupyter_client's MultiKernelManager, or one of its kind; one that runs
            kernels elsewhere may start them without it.
        environment: by id of the kernel.
    """
    prepare = getattr(manager, "pre_start_kernel", None)
    if prepare is None:
        return

    def prepare_with_environment(
        kernel_name: str | None, options: dict[str, Any]
    ) -> tuple[Any, str, str]:
        kernel, name, kernel_id = prepare(kernel_name, options)
        given = options.get("env") or os.environ
        options["env"] = {**given, **environment(kernel_id)}
        return kernel, name, kernel_id

    manager.pre_start_kernel = prepare_with_environment
