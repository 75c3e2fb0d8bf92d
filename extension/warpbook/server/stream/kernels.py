"""The kernels that this Jupyter server runs: their processes and their notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from warpbook_monitors.plain_text import bounded


@dataclass(frozen=True)
class RunningKernel:
    """One kernel, as the server knows it."""

    id: str
    #: None where it runs on another machine
    pid: int | None
    #: the notebook's path, or what else the kernel was started for; to show
    name: str
    #: "idle", "busy", "starting", ...; None where the server does not know
    execution_state: str | None
    #: how long it has run nothing; None while it does
    idle_s: float | None
    #: the notebook's whole path; empty where it has none
    notebook: str = ""


async def running_kernels(serverapp: Any) -> list[RunningKernel]:
    """List them; on the event loop, where Jupyter keeps them."""
    names = {
        session["kernel"]["id"]: session["path"] or session["name"]
        for session in await serverapp.session_manager.list_sessions()
        if session is not None
    }
    manager = serverapp.kernel_manager
    kernels = []
    for kernel_id in manager.list_kernel_ids():
        try:
            kernel = manager.get_kernel(kernel_id)
        except KeyError:
            continue  # it ended meanwhile
        state = getattr(kernel, "execution_state", None)
        name = names.get(kernel_id) or f"kernel {kernel_id[:8]}"
        kernels.append(
            RunningKernel(
                id=kernel_id,
                pid=getattr(getattr(kernel, "provisioner", None), "pid", None),
                name=bounded(name),
                execution_state=state,
                idle_s=_idle_s(kernel) if state == "idle" else None,
                notebook=names.get(kernel_id) or "",
            )
        )
    return kernels


def runs_kernel(serverapp: Any, kernel_id: str) -> bool:
    """Whether this server runs a kernel, which costs next to nothing to ask."""
    return serverapp is not None and kernel_id in serverapp.kernel_manager


def runs_code(serverapp: Any, kernel_id: str) -> bool:
    """Whether a kernel is at work, which costs next to nothing to ask.

    One of which the server knows no state is taken to be.
    """
    manager = serverapp.kernel_manager
    if kernel_id not in manager:
        return False
    kernel = manager.get_kernel(kernel_id)
    return getattr(kernel, "execution_state", None) != "idle"


def _idle_s(kernel: Any) -> float | None:
    last = getattr(kernel, "last_activity", None)
    if not isinstance(last, datetime):
        return None
    return max((datetime.now(timezone.utc) - last).total_seconds(), 0.0)
