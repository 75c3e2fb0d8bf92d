"""Whether `%%gpuprof --stalls` and labs' cards can tell here where warps wait."""

from __future__ import annotations

import re
from pathlib import Path

from warpbook.cli.doctor.check import Check
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.nvml.visible import visible_gpus
from warpbook_profiler.stalls.cupti import ADMIN_ONLY, NotSampled, cupti

_WHAT = "Stall sampling"
#: Volta is the first that CUPTI samples so
_FIRST_CAPABILITY = (7, 0)
_CAP_SYS_ADMIN = 1 << 21


def stall_check(proc: Path = Path("/proc")) -> Check:
    """Look at GPU, library and permission; nothing is sampled."""
    try:
        gpus = visible_gpus()
        found = [call("nvmlDeviceGetCudaComputeCapability", of.handle) for of in gpus]
    except MonitorError:
        found = []
    if not found:
        return Check(_WHAT, "absent", "It needs an NVIDIA GPU, and there is none here.")
    major, minor = max(found)
    if (major, minor) < _FIRST_CAPABILITY:
        words = (
            f"It is not available on this device (compute capability {major}.{minor})."
        )
        return Check(_WHAT, "absent", words, "Use a GPU of Volta (7.0) or later.")
    try:
        cupti()
    except NotSampled as problem:
        remedy = "Install PyTorch for CUDA, which brings it, or nvidia-cuda-cupti."
        return Check(_WHAT, "absent", str(problem), remedy)
    allowed = _is_allowed(proc)
    if allowed is None:
        words = "available, if the driver allows it; it does not say so here"
        return Check(_WHAT, "ok", words)
    if not allowed:
        return Check(_WHAT, "absent", "It is not permitted here.", f"{ADMIN_ONLY}.")
    return Check(_WHAT, "ok", "available: %%gpuprof --stalls, and labs' cards")


def _is_allowed(proc: Path) -> bool | None:
    """Tell whether the driver gives counters to this account; None: it is not told."""
    try:
        parameters = (proc / "driver/nvidia/params").read_text(errors="replace")
        status = (proc / "self/status").read_text(errors="replace")
    except OSError:
        return None
    admin_only = re.search(r"^RmProfilingAdminOnly: (\d+)", parameters, re.M)
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)", status, re.M)
    if admin_only is None or capabilities is None:
        return None
    return admin_only[1] == "0" or bool(int(capabilities[1], 16) & _CAP_SYS_ADMIN)
