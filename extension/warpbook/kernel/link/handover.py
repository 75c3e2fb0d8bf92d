"""Hands the runs of cells to the server and shows its receipts, on a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass

from msgspec.structs import replace

from warpbook.kernel.link.allocator import gpu_uuid
from warpbook.kernel.link.late_output import LateOutput, no_receipt, receipt_line
from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.kernel.link.unkept import unkept
from warpbook.protocol import CellRun

#: so long after a cell its reply is out, and no thread is in its way
_AFTER_S = 0.1


@dataclass(frozen=True)
class AwaitedReceipt:
    """A cell that ran and whose receipt is not there yet."""

    run: CellRun
    #: where the receipt goes; None while the server does not answer
    output: LateOutput | None
    source: str = ""


class Handover:
    """From `%gpuwatch on` to `%gpuwatch off`."""

    def __init__(self, link: ServerLink, kernel_id: str) -> None:
        """Have the server read the GPUs from now on.

        Raises:
            LinkError: it can't give receipts.
        """
        #: why the newest cell has no receipt; empty if all is well
        self.trouble = ""
        #: the newest cell that something held back, by its receipt
        self.suspect: AwaitedReceipt | None = None
        self.kernel_id = kernel_id
        self._link = link
        self._pending: queue.SimpleQueue[AwaitedReceipt | None] = queue.SimpleQueue()
        link.watch(kernel_id, on=True)
        self._thread = threading.Thread(
            target=self._work, name="warpbook-receipts", daemon=True
        )
        self._thread.start()

    def hand_in(self, pending: AwaitedReceipt) -> None:
        """Have the receipt asked for; returns at once."""
        self._pending.put(pending)

    def stop(self) -> None:
        """End when the receipts that are still wanted have come."""
        self._pending.put(None)

    def wait(self, most_s: float) -> None:
        """Wait for that end: the server knows then that this kernel is off."""
        self._thread.join(most_s)

    def _work(self) -> None:
        while (pending := self._pending.get()) is not None:
            if self.trouble and not self._pending.empty():
                # a server that lets each cell wait: the newest is enough to try
                continue
            since_s = time.time() - pending.run.ended_ms / 1e3
            time.sleep(min(max(_AFTER_S - since_s, 0), _AFTER_S))
            try:
                receipt, problem = self._link.receipt(_with_uuids(pending.run))
            except LinkError as trouble:
                self._tell_once(pending, str(trouble))
                continue
            self.trouble = ""
            caution = "" if problem is None else unkept.hold(problem)
            if receipt.view is not None and receipt.view.is_held_back:
                self.suspect = pending
            if pending.output is not None:
                pending.output.update(receipt_line(receipt, caution))
        with contextlib.suppress(LinkError):
            self._link.watch(self.kernel_id, on=False)

    def _tell_once(self, pending: AwaitedReceipt, problem: str) -> None:
        if pending.output is not None and not self.trouble:
            pending.output.update(no_receipt(pending.run, problem))
        self.trouble = problem


def _with_uuids(run: CellRun) -> CellRun:
    """Name the GPUs; it takes too long for the time between two cells."""
    named = [
        replace(allocator, uuid=gpu_uuid(allocator.index))
        for allocator in run.allocators
    ]
    return replace(run, allocators=tuple(named))
