"""The handle of a device that may be lost, and found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.nvml.gate import NvmlError, call
from warpbook_monitors.nvml.questions import RETRY_NS

Handle = Any


class Contact:
    """Keeps the handle; a lost device is looked for every 10 s, and not between."""

    def __init__(
        self, handle: Handle, find: Callable[[], Handle], forget: Callable[[], None]
    ) -> None:
        """Take the handle, how to get another one, and what no loss may span."""
        self.handle = handle
        self._find = find
        self._forget = forget
        self._lost = ""
        self._gone = ""
        self._retry_ns = 0

    def give_up(self, why: str) -> None:
        """Read it no more; any thread may say so."""
        self._gone = why

    def read(self, now_ns: int, ask: Callable[[Handle, int], None]) -> None:
        """Call `ask` with the handle, unless the device is lost.

        Raises:
            DeviceLost: it is, with the reason.
        """
        if self._gone:
            raise DeviceLost(self._gone)
        if self._lost and now_ns < self._retry_ns:
            raise DeviceLost(self._lost)
        try:
            if self._lost:
                self.handle = self._find()
            ask(self.handle, now_ns)
        except (DeviceLost, Unavailable, NvmlError) as error:
            self._lost = str(error)
            self._retry_ns = now_ns + RETRY_NS
            self._forget()
            raise DeviceLost(self._lost) from None
        self._lost = ""


def handle_of(uuid: str) -> Handle:
    """Find a GPU or a MIG instance by its UUID; its number may have changed.

    Raises:
        NvmlError: there is none now, with the reason.
        DeviceLost: it is lost.
    """
    return call("nvmlDeviceGetHandleByUUID", uuid.encode())
