"""When a receipt looks as if something held the cell back, a full trace is offered."""

from __future__ import annotations

from warpbook.protocol import DeviceReceipt, Receipt
from warpbook_monitors import units

#: a shorter cell in which nothing ran did other things, as cells do
_IDLE_MS = 10_000.0
#: on a GPU that tells no more than whether anything ran
_LITTLE_USED_RATIO = 0.5
_HELD_BACK = {
    "host-bound": "the GPU waited for the host",
    "transfer-bound": "copies between host and GPU took the time",
    "communication-bound": "exchanging data between GPUs took the time",
}
HOW = (
    "to see why, put %%gpuprof on its first line, or run %gpuwatch trace and then this "
    "cell again"
)


def offer(receipt: Receipt) -> str:
    """Say what looks wrong and how to see more; empty if nothing does."""
    for device in receipt.devices:
        # else it may be what others did
        if receipt.cell.allocators or device.shared is False:
            reason = _found(device, receipt)
            if reason:
                return f"{reason}: {HOW}"
    return ""


def _found(device: DeviceReceipt, receipt: Receipt) -> str:
    verdict = device.verdict
    if verdict is None:
        return ""
    if verdict.kind == "idle" and receipt.wall_ms >= _IDLE_MS:
        return "the GPU idled, though this kernel holds memory on it"
    utilization = device.span.metrics.get("gpu_utilization_ratio")
    if (
        verdict.kind == "unknown"
        and "sm_active_ratio" not in device.span.metrics
        and utilization is not None
        and utilization.mean is not None
        and utilization.mean < _LITTLE_USED_RATIO
    ):
        return f"the GPU was at work for {units.share(utilization.mean)} of the time"
    return _HELD_BACK.get(verdict.kind, "")
