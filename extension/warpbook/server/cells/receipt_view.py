"""A receipt as it is shown: worded once, drawn below the cell and on the page."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook.protocol import (
    Allocator,
    Device,
    DeviceReceipt,
    DeviceReceiptView,
    Receipt,
    ReceiptView,
)
from warpbook.server.past.span_figures import coverage, key_figures
from warpbook_monitors import units
from warpbook_monitors.labels import device_label
from warpbook_profiler.model.report_view import (
    FigureGroup,
    LabelledFigure,
    ReportTable,
    TableCell,
)

#: below this share of the time a GPU is at rest: clocks and displays tick on it
_AT_REST_RATIO = 0.01
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


def view_of_receipt(receipt: Receipt, devices: Sequence[Device]) -> ReceiptView:
    """Word a receipt.

    Args:
        receipt: its figures, with those of the run before.
        devices: of the machine now; of one that is gone there is only its id.
    """
    suspicion = offer(receipt)
    common = _common_notes(receipt.devices)
    return ReceiptView(
        cell_line=_cell_line(receipt, suspicion),
        is_held_back=bool(suspicion),
        figures=(
            LabelledFigure("Wall time", _wall_time(receipt)),
            LabelledFigure("GPU time", "not known without a trace"),
        ),
        devices=tuple(
            _device_view(device, receipt.previous, devices, common)
            for device in receipt.devices
        ),
        allocators=tuple(map(_counted_by_torch, receipt.cell.allocators)),
        notes=common,
    )


def _cell_line(receipt: Receipt, suspicion: str) -> str:
    """Say what the cell took, what it took the time before, and how to see more."""
    if _left_gpus_alone(receipt):
        gpus = "GPU" if len(receipt.devices) == 1 else "GPUs"
        return f"{units.duration(receipt.wall_ms)} · {gpus} at rest"
    clauses = [receipt.line]
    before = receipt.previous
    # where a cell is too short for a reading, its time is all noise
    if before is not None and any(device.span.metrics for device in receipt.devices):
        clauses.append(_time_and_energy(before))
    if suspicion:
        clauses.append(suspicion)
    return " · ".join(clauses)


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


def _time_and_energy(before: Receipt) -> str:
    """The run before, in the figures that compare."""
    figures = [units.duration(before.wall_ms)]
    energies = [device.span.energy_joules for device in before.devices]
    known = [energy for energy in energies if energy is not None]
    if known and len(known) == len(energies):
        figures.append(units.energy(sum(known)))
    return f"before: {', '.join(figures)}"


def _wall_time(receipt: Receipt) -> str:
    wall = units.duration(receipt.wall_ms)
    if receipt.previous is None:
        return wall
    return f"{wall} (before: {units.duration(receipt.previous.wall_ms)})"


def _common_notes(devices: Sequence[DeviceReceipt]) -> tuple[str, ...]:
    """What holds for every GPU is said once, below them."""
    if not devices:
        return ()
    return tuple(
        note
        for note in devices[0].notes
        if all(note in device.notes for device in devices)
    )


def _device_view(
    receipt: DeviceReceipt,
    previous: Receipt | None,
    devices: Sequence[Device],
    common: Sequence[str],
) -> DeviceReceiptView:
    span = receipt.span
    device = next((known for known in devices if known.id == span.device), None)
    earlier = None if previous is None else _of_device(previous, span.device)
    notes = [note for note in receipt.notes if note not in common]
    if receipt.shared is False:
        # the other notes say it where others did, or may have
        notes.insert(0, "Nobody else held memory on it.")
    if coverage(span):
        notes.insert(0, coverage(span))
    return DeviceReceiptView(
        name=span.device if device is None else device_label(device, devices),
        table=None if device is None else _figures(device, receipt, earlier),
        conditions=span.conditions,
        notes=tuple(notes),
    )


def _of_device(receipt: Receipt, device_id: str) -> DeviceReceipt | None:
    return next(
        (device for device in receipt.devices if device.span.device == device_id), None
    )


def _figures(
    device: Device, now: DeviceReceipt, before: DeviceReceipt | None
) -> ReportTable:
    """Put the figures of this run beside those of the one before."""
    earlier = {}
    if before is not None:
        figures = key_figures(device, before.span)
        earlier = {figure.label: figure.value for figure in figures}
    rows = tuple(
        (
            TableCell(figure.label),
            TableCell(figure.value),
            *(
                ()
                if before is None
                else (TableCell(earlier.get(figure.label, "not known")),)
            ),
        )
        for figure in key_figures(device, now.span)
    )
    if before is None:
        return ReportTable("", "", ("This run",), rows)
    title = "Against the same cell’s run before"
    return ReportTable(title, "", ("This run", "Before"), rows)


def _counted_by_torch(allocator: Allocator) -> FigureGroup:
    return FigureGroup(
        f"torch, cuda:{allocator.index}",
        (
            LabelledFigure(
                "Peak in the cell", units.size(allocator.peak_allocated_bytes)
            ),
            LabelledFigure("Allocated after it", units.size(allocator.allocated_bytes)),
            LabelledFigure("Reserved after it", units.size(allocator.reserved_bytes)),
            LabelledFigure("Allocation retries", f"{allocator.retries:,}"),
        ),
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
