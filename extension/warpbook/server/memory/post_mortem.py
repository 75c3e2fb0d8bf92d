"""After a cell ran out of GPU memory: who held what, told to every view."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from warpbook.protocol import Device, Holders, OutOfMemory, PostMortem
from warpbook.server.memory.attribution import is_device
from warpbook.server.memory.holder_watch import HolderWatch
from warpbook.server.records.record_forms import post_mortem_record
from warpbook.server.records.records import Records
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.labels import device_label
from warpbook_monitors.memory.post_mortem import explain, with_counted
from warpbook_monitors.plain_text import bounded

MAX_POST_MORTEMS = 5


class PostMortems(StreamPart):
    """Writes them, and keeps the newest for views opened later."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        holders: HolderWatch,
        records: Records | None = None,
    ) -> None:
        """Take who sends them, who knows the holders, and who has those before."""
        self._records = records or Records()
        self._broadcaster = broadcaster
        self._holders = holders
        self._kept: deque[bytes] = deque(maxlen=MAX_POST_MORTEMS)
        broadcaster.attach(self)

    async def write(self, failure: OutOfMemory) -> tuple[PostMortem, str]:
        """Find out who holds memory now, and tell everybody.

        Returns:
            What is known, and why it is not on disk; empty where it is.
        """
        now = await self._holders.read()
        device = self._device(failure, now)
        holders = None
        if device is not None and device.id in now.devices:
            held = now.devices[device.id]
            holders = with_counted(held, failure.failed, failure.kernel_id)
        name = None
        if device is not None:
            label = device_label(device, self._broadcaster.devices)
            name = f"{label} ({device.name})"
        report = PostMortem(
            time_ms=time.time() * 1000,
            kernel_id=bounded(failure.kernel_id),
            notebook=_notebook(failure, now),
            cell_id=None if failure.cell_id is None else bounded(failure.cell_id),
            device=None if device is None else device.id,
            asked_bytes=failure.failed.asked_bytes,
            holders=holders,
            sentence=explain(failure.failed, name, holders, failure.kernel_id),
        )
        encoded = encode(report)
        unkept = await self._records.keep((post_mortem_record(report), encoded))
        self._kept.append(encoded)
        self._broadcaster.viewers.send_everyone(encoded)
        return report, unkept

    async def load(self) -> list[bytes]:
        """Take the newest that are on disk; give those that are news, for views.

        Raises:
            ArchiveError: they can't be read.
        """
        messages = await self._records.newest("post_mortem", MAX_POST_MORTEMS)
        news = [message for message in messages if message not in self._kept]
        self._kept = deque([*news, *self._kept], maxlen=MAX_POST_MORTEMS)
        return [message for message in news if message in self._kept]

    def _device(self, failure: OutOfMemory, now: Holders) -> Device | None:
        """Find the GPU that was full: by its UUID, or because only one can be it."""
        live = [
            device
            for device in self._broadcaster.devices
            if device.kind in ("gpu", "mig") and device.origin == "live"
        ]
        uuid = failure.failed.device_uuid
        if uuid is not None:
            return next((device for device in live if is_device(device, uuid)), None)
        held = [
            device
            for device in live
            if device.id in now.devices
            and any(
                holder.kernel_id == failure.kernel_id
                for holder in now.devices[device.id].holders
            )
        ]
        candidates = held or live
        return candidates[0] if len(candidates) == 1 else None

    def greeting(self) -> Iterable[bytes]:
        return tuple(self._kept)


def _notebook(failure: OutOfMemory, now: Holders) -> str | None:
    """Name the notebook as Jupyter knows it, else as the kernel was told it."""
    for held in now.devices.values():
        for holder in held.holders:
            if holder.kernel_id == failure.kernel_id:
                return holder.name
    return None if failure.notebook is None else bounded(failure.notebook)
