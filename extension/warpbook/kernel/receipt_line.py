"""The one line under a cell, as text and as HTML."""

from __future__ import annotations

from warpbook.kernel.late_output import Bundle, one_line
from warpbook.kernel.trace_offer import offer
from warpbook.protocol import CellRun, DeviceReceipt, Receipt
from warpbook_monitors import units

#: below this share of the time a GPU is at rest: clocks and displays tick on it
_AT_REST_RATIO = 0.01


def wall_line(run: CellRun) -> Bundle:
    """Say what the kernel knows by itself, until the receipt comes."""
    return one_line(units.duration(run.ended_ms - run.started_ms))


def no_receipt(run: CellRun, why: str) -> Bundle:
    """Say why there will be none; the cells after this one have no line."""
    wall = units.duration(run.ended_ms - run.started_ms)
    return one_line(f"{wall} · No receipts for now. {why}")


def receipt_line(receipt: Receipt) -> Bundle:
    """Say what the cell took, and what it took the time before."""
    if _left_gpus_alone(receipt):
        gpus = "GPU" if len(receipt.devices) == 1 else "GPUs"
        return one_line(f"{units.duration(receipt.wall_ms)} · {gpus} at rest")
    offered = offer(receipt)
    before = receipt.previous
    # where a cell is too short for a reading, its time is all noise
    if before is None or not any(each.span.metrics for each in receipt.devices):
        said = [receipt.line]
    else:
        said = [receipt.line, _figures(before)]
    return one_line(" · ".join((*said, offered) if offered else said))


def _left_gpus_alone(receipt: Receipt) -> bool:
    """Whether nothing says that the cell, or anybody, used a GPU meanwhile."""
    if receipt.cell.allocators or not receipt.devices:
        return False
    return all(map(_is_at_rest, receipt.devices))


def _is_at_rest(device: DeviceReceipt) -> bool:
    busiest = [
        device.span.metrics[name].most
        for name in ("sm_active_ratio", "gpu_utilization_ratio")
        if name in device.span.metrics
    ]
    # without a reading nobody knows
    return bool(busiest) and all(
        most is not None and most < _AT_REST_RATIO for most in busiest
    )


def _figures(before: Receipt) -> str:
    """The run before, in the figures that compare."""
    said = [units.duration(before.wall_ms)]
    energies = [device.span.energy_joules for device in before.devices]
    known = [energy for energy in energies if energy is not None]
    if known and len(known) == len(energies):
        said.append(units.energy(sum(known)))
    return f"before: {', '.join(said)}"
