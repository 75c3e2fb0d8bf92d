"""Which GPUs a cell used, by its allocators and by who holds memory."""

from __future__ import annotations

from collections.abc import Iterable

from warpbook.protocol import CellRun, Device, DeviceHolders, Holders
from warpbook.server.cells.receipt_words import Whose
from warpbook.server.memory.attribution import is_device

#: less than any CUDA context takes: whoever holds that much is in the list
_NO_CONTEXT_BYTES = 64 * 2**20


def used_by(
    run: CellRun, gpus: dict[int, Device], holders: Holders | None
) -> tuple[dict[int, Device], Whose]:
    """The GPUs that the cell may have used, by position, and how that is known."""
    held = {} if holders is None else holders.devices
    named = {allocator.uuid for allocator in run.allocators}
    used = {
        at: device
        for at, device in gpus.items()
        if any(uuid is not None and is_device(device, uuid) for uuid in named)
        or _holds(run, held.get(device.id))
    }
    if used and None not in named:
        return used, "kernel"
    if (
        gpus
        and not named
        and holders is not None
        and holders.time_ms >= run.ended_ms
        and all(_is_whole(held.get(device.id)) for device in gpus.values())
    ):
        return {}, "nobody"
    return gpus, "unknown"


def apart(devices: Iterable[Device]) -> dict[int, Device]:
    """The GPUs by position; one that is split is its instances, and not itself."""
    gpus = {
        at: device for at, device in enumerate(devices) if device.kind in ("gpu", "mig")
    }
    split = {device.facts.get("parent") for device in gpus.values()}
    return {at: device for at, device in gpus.items() if device.id not in split}


def _is_whole(held: DeviceHolders | None) -> bool:
    """Whether a list of holders leaves nobody out."""
    if held is None or held.notes or held.unattributed_bytes is None:
        return False
    # a container may be shown an empty list, whoever holds the memory
    return held.unattributed_bytes < _NO_CONTEXT_BYTES


def _holds(run: CellRun, held: DeviceHolders | None) -> bool:
    return held is not None and any(
        holder.kernel_id == run.kernel_id for holder in held.holders
    )


def is_shared(run: CellRun, held: DeviceHolders) -> bool | None:
    """Whether others hold memory; None where the list is not whole."""
    if any(holder.kernel_id != run.kernel_id for holder in held.holders):
        return True
    return None if held.notes or held.unattributed_bytes is None else False
