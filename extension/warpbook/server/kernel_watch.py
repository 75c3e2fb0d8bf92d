"""Which kernels have `%gpuwatch` on: for them the GPUs are read without a view."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from warpbook.server.broadcast import Broadcaster
from warpbook.server.kernels import RunningKernel

_log = logging.getLogger(__name__)

_PERIOD_S = 3.0
_WHO = "receipts"


class UnknownKernel(Exception):
    """This server does not run the kernel, so it could not see it end."""


class KernelWatch:
    """Has the GPUs read until the last of these kernels is off, dead or restarted."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        kernels: Callable[[], Awaitable[Sequence[RunningKernel]]],
    ) -> None:
        """Take who reads the GPUs, and who knows the kernels that run."""
        self._broadcaster = broadcaster
        self._kernels = kernels
        #: by id, the process: one that was restarted has another, and no magic on
        self._watching: dict[str, int | None] = {}
        self._checking: asyncio.Task[None] | None = None

    async def turn_on(self, kernel_id: str) -> None:
        """Have the GPUs read for a kernel.

        Raises:
            UnknownKernel: it is none of this server's.
        """
        running = await self._running()
        if kernel_id not in running:
            raise UnknownKernel(kernel_id)
        self._watching[kernel_id] = running[kernel_id]
        self._broadcaster.hold(_WHO)
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())

    def turn_off(self, kernel_id: str) -> None:
        """Read no more for a kernel."""
        self._watching.pop(kernel_id, None)
        if not self._watching:
            self._broadcaster.release(_WHO)

    def close(self) -> None:
        """Ask after the kernels no more."""
        if self._checking is not None:
            self._checking.cancel()

    async def _check(self) -> None:
        while self._watching:
            await asyncio.sleep(_PERIOD_S)
            try:
                running = await self._running()
            except Exception:  # noqa: BLE001 - else the GPUs would be read for ever
                _log.exception("Asking after the kernels failed; asked again.")
                continue
            for kernel_id, pid in tuple(self._watching.items()):
                if kernel_id not in running or running[kernel_id] != pid:
                    self.turn_off(kernel_id)

    async def _running(self) -> dict[str, int | None]:
        return {kernel.id: kernel.pid for kernel in await self._kernels()}
