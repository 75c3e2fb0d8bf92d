"""What each cell cost, from the history alone: no trace is taken."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from warpbook.protocol import (
    CellRun,
    DeviceReceipt,
    DeviceSpan,
    Holders,
    Receipt,
    Verdict,
)
from warpbook.server.cells.cell_gpus import apart, is_shared, used_by
from warpbook.server.cells.receipt_view import view_of_receipt
from warpbook.server.cells.receipt_words import SHORTEST_MS, notes, one_line
from warpbook.server.memory.holder_watch import HolderWatch
from warpbook.server.past.history import Past
from warpbook.server.records.record_forms import decode_receipt, receipt_record
from warpbook.server.records.records import Records
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.archive.errors import UNREADABLE, ArchiveError
from warpbook_monitors.verdicts.verdict import judge_means

#: a cell that ran is refused beyond this size
MAX_CELL_BYTES = 32_768
MAX_RECEIPTS = 500
#: each new view is sent the newest of them
MAX_GREETING_BYTES = 1_000_000
#: of one cell, that are looked through on disk
_MOST_OF_CELL = 20
#: half a second after the cell NVML's power, a mean over a second, is about it
_CLOSED_AFTER_MS = 600.0
_PATIENCE_S = 1.0
#: a shorter cell, or one that was read for less of its time, is not judged
_JUDGED_MS = 1000.0
_JUDGED_RATIO = 0.5
#: two clocks of one machine
_CLOCK_SLACK_MS = 1000.0
#: who holds memory now is no news of a cell that ended before
_HOLDERS_TELL_MS = 10_000.0


#: of the many that a GPU has, those that say what a cell did with it
_METRICS = frozenset(
    (
        "sm_active_ratio",
        "sm_occupancy_ratio",
        "tensor_active_ratio",
        "hmma_active_ratio",
        "imma_active_ratio",
        "dfma_active_ratio",
        "fp16_active_ratio",
        "fp32_active_ratio",
        "fp64_active_ratio",
        "dram_active_ratio",
        "pcie_rx_bytes_per_s",
        "pcie_tx_bytes_per_s",
        "nvlink_rx_bytes_per_s",
        "nvlink_tx_bytes_per_s",
        "gpu_utilization_ratio",
        "memory_utilization_ratio",
        "memory_used_bytes",
        "power_watts",
        "temperature_celsius",
        "sm_clock_mhz",
    )
)


class NotYours(Exception):
    """A kernel speaks for another one."""


def check_times(run: CellRun) -> None:
    """Refuse a run that can't have been.

    Raises:
        ValueError: with the reason.
    """
    if not 0 <= run.started_ms <= run.ended_ms <= time.time() * 1000 + _CLOCK_SLACK_MS:
        raise ValueError(
            "The cell ends before it starts, or has not ended yet; if the machine's "
            "clock was set, the next cell is right."
        )


class Receipts(StreamPart):
    """Writes receipts and keeps the newest; on the event loop."""

    def __init__(
        self, past: Past, holders: HolderWatch, records: Records | None = None
    ) -> None:
        """Take who knows the past, and who knows the holders of memory."""
        self._past = past
        self._records = records or Records()
        self._broadcaster = past.broadcaster
        self._holders = holders
        #: by id of the run, without their own "previous"; oldest first
        self._kept: OrderedDict[str, Receipt] = OrderedDict()
        #: of receipts that are being written: by id of the run, whose it is
        self._claimed: dict[str, str] = {}
        self._broadcaster.attach(self)

    async def take(self, run: CellRun) -> tuple[Receipt, str]:
        """Write the receipt of a cell that has just run, keep it and tell everybody.

        Returns:
            The receipt, and why it is not on disk; empty where it is.

        Raises:
            NotYours: another kernel handed in a run of this id.
        """
        owner = self._claimed.setdefault(run.id, run.kernel_id)
        try:
            if owner == run.kernel_id:
                owner = await self._owner(run)
            if owner != run.kernel_id:
                raise NotYours("This receipt is another kernel's.")
            return await self._take(run)
        finally:
            if self._claimed.get(run.id) == run.kernel_id:
                del self._claimed[run.id]

    async def _owner(self, run: CellRun) -> str:
        """Whose the kept receipt of this id is; who asks, where there is none."""
        kept = self._kept.get(run.id)
        if kept is not None:
            return kept.cell.kernel_id
        try:
            message = await self._records.message("receipt", run.id)
        except ArchiveError:
            # what is on disk can't be looked at, and is not replaced either
            return run.kernel_id
        for receipt in _decoded([message] if message is not None else []):
            return receipt.cell.kernel_id
        return run.kernel_id

    async def _take(self, run: CellRun) -> tuple[Receipt, str]:
        if run.allocators:
            self._holders.note_allocators(run.kernel_id, run.allocators)
        receipt = await self.make(run)
        encoded = encode(receipt)
        record = receipt_record(receipt, self._is_replay())
        unkept = await self._records.keep((record, encoded))
        self._kept.pop(run.id, None)
        self._kept[run.id] = replace(receipt, previous=None)
        self._make_room()
        self._broadcaster.viewers.send_everyone(encoded)
        return receipt, unkept

    async def load(self) -> list[bytes]:
        """Take the newest that are on disk; give those that are news, for views.

        Raises:
            ArchiveError: they can't be read.
        """
        messages = await self._records.newest("receipt", MAX_RECEIPTS)
        receipts = await asyncio.to_thread(self._viewed, messages)
        news = [receipt for receipt in receipts if receipt.cell.id not in self._kept]
        present = list(self._kept.items())
        self._kept = OrderedDict(
            (receipt.cell.id, replace(receipt, previous=None)) for receipt in news
        )
        self._kept.update(present)
        self._make_room()
        return list(_newest_encoded(news))

    @property
    def kept(self) -> Iterator[Receipt]:
        """Give the receipts in memory, the newest first."""
        return reversed(self._kept.values())

    async def find(self, run: CellRun) -> Receipt | None:
        """Find the kept receipt of a run that a view knows only by its times."""
        for kept in reversed(self._kept.values()):
            if _is_same_run(kept.cell, run):
                return replace(kept, previous=await self._previous(kept.cell))
        older = await self._older(run, run.ended_ms)
        same = next((kept for kept in older if _is_same_run(kept.cell, run)), None)
        return None if same is None else self._with_view(same)

    async def find_kept(self, receipt_id: str) -> Receipt | None:
        """Find a receipt by its id, on disk.

        Raises:
            ArchiveError: the disk can't be read.
        """
        message = await self._records.message("receipt", receipt_id)
        viewed = self._viewed([] if message is None else [message])
        return next(iter(viewed), None)

    def _viewed(self, messages: Iterable[bytes]) -> list[Receipt]:
        return [self._with_view(receipt) for receipt in _decoded(messages)]

    def _with_view(self, receipt: Receipt) -> Receipt:
        """Add what is shown; a receipt of an older warpbook has none."""
        if receipt.view is not None:
            return receipt
        return replace(
            receipt, view=view_of_receipt(receipt, self._broadcaster.devices)
        )

    def _make_room(self) -> None:
        while len(self._kept) > MAX_RECEIPTS:
            self._kept.popitem(last=False)

    def _is_replay(self) -> bool:
        return self._broadcaster.sampler.replay is not None

    async def make(self, run: CellRun) -> Receipt:
        """Write a receipt, as soon as the history holds all of the cell."""
        await self._broadcaster.ready()
        await self._wait_for(run.ended_ms + _CLOSED_AFTER_MS)
        wall_ms = run.ended_ms - run.started_ms
        holders = await self._holders_after(run)
        gpus = apart(self._broadcaster.devices)
        # what a recording's GPU did is no cell's of this machine
        own = {at: gpu for at, gpu in gpus.items() if gpu.origin != "replay"}
        devices, whose = used_by(run, own, holders)
        spans: tuple[DeviceSpan, ...]
        if wall_ms < SHORTEST_MS:
            unknown = DeviceSpan("", {}, None, None, ())
            spans = tuple(replace(unknown, device=d.id) for d in devices.values())
        else:
            spans = await self._past.spans(run.started_ms, run.ended_ms, devices)
        receipts = tuple(self._on_device(run, span, holders) for span in spans)
        previous = await self._previous(run)
        is_replay = bool(gpus) and not own
        line = one_line(run, receipts, previous, whose, is_replay)
        return self._with_view(Receipt(run, wall_ms, receipts, line, previous))

    async def _holders_after(self, run: CellRun) -> Holders | None:
        """Who holds memory since the cell ended; None if that was long ago."""
        if time.time() * 1000 - run.ended_ms > _HOLDERS_TELL_MS:
            return None
        newest = self._holders.newest
        if newest is not None and newest.time_ms >= run.ended_ms:
            return newest
        if run.ended_ms - run.started_ms < SHORTEST_MS:
            return newest
        try:
            return await asyncio.wait_for(self._holders.read(), _PATIENCE_S)
        except asyncio.TimeoutError:
            return newest

    def _on_device(
        self, run: CellRun, span: DeviceSpan, holders: Holders | None
    ) -> DeviceReceipt:
        held = holders.devices.get(span.device) if holders else None
        shared = None if held is None else is_shared(run, held)
        chosen = {
            name: metric for name, metric in span.metrics.items() if name in _METRICS
        }
        missing = self._past.missing(run.started_ms, run.ended_ms)
        return DeviceReceipt(
            replace(span, metrics=chosen),
            shared,
            notes(run, span, shared, missing),
            self._verdict(run, span),
        )

    def _verdict(self, run: CellRun, span: DeviceSpan) -> Verdict | None:
        """Judge a cell that ran long enough and was read most of the time."""
        if run.ended_ms - run.started_ms < _JUDGED_MS:
            return None
        means = {
            name: metric.mean
            for name, metric in span.metrics.items()
            if metric.mean is not None and metric.covered_ratio >= _JUDGED_RATIO
        }
        of_span = [
            device for device in self._broadcaster.devices if device.id == span.device
        ]
        return judge_means(of_span[0], means) if of_span and means else None

    async def _previous(self, run: CellRun) -> Receipt | None:
        """The receipt of the same cell's run before."""
        for kept in reversed(self._kept.values()):
            if kept.cell.ended_ms <= run.started_ms and _is_same_cell(kept.cell, run):
                return replace(kept, view=None)
        for kept in await self._older(run, run.started_ms):
            if kept.cell.ended_ms <= run.started_ms and _is_same_cell(kept.cell, run):
                return replace(kept, previous=None, view=None)
        return None

    async def _older(self, run: CellRun, before_ms: float) -> list[Receipt]:
        """The receipts of a cell that are on disk, the newest first."""
        if run.cell_id is None:
            return []
        try:
            messages = await self._records.of_cell(
                "receipt", run.cell_id, before_ms, _MOST_OF_CELL
            )
        except ArchiveError:
            # a receipt without what was before is better than none
            return []
        return _decoded(messages)

    async def _wait_for(self, time_ms: float) -> None:
        """Wait until the history reaches a time; not for long, and not for nobody."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while (
            self._past.newest_ms < time_ms
            and self._broadcaster.demand.is_awake
            and time.monotonic() < deadline_s
        ):
            await asyncio.sleep(0.05)

    def greeting(self) -> Iterable[bytes]:
        """Give the newest receipts, oldest first."""
        return _newest_encoded(list(self._kept.values()))


def _newest_encoded(receipts: Sequence[Receipt]) -> Iterable[bytes]:
    """Encode as many of the newest as a new view is sent; the oldest first."""
    greeting: list[bytes] = []
    size_bytes = 0
    for receipt in reversed(receipts):
        greeting.append(encode(replace(receipt, previous=None)))
        size_bytes += len(greeting[-1])
        if size_bytes > MAX_GREETING_BYTES:
            break
    return reversed(greeting)


def _decoded(messages: Iterable[bytes]) -> list[Receipt]:
    """Decode what can be: another version of warpbook may have written others."""
    receipts = []
    for message in messages:
        try:
            receipts.append(decode_receipt(message))
        except UNREADABLE:
            continue
    return receipts


def _is_same_run(cell: CellRun, run: CellRun) -> bool:
    """Whether a cell, and one that a view knows only by its times, are one."""
    both_ms = min(cell.ended_ms, run.ended_ms) - max(cell.started_ms, run.started_ms)
    return (
        _is_same_cell(cell, run)
        and both_ms >= 0.5 * (cell.ended_ms - cell.started_ms)
        and both_ms >= 0.5 * (run.ended_ms - run.started_ms)
    )


def _is_same_cell(one: CellRun, other: CellRun) -> bool:
    if one.cell_id is None or one.cell_id != other.cell_id:
        return False
    if one.kernel_id == other.kernel_id:
        return True
    return one.notebook is not None and one.notebook == other.notebook
