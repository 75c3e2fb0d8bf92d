"""Which kernels have `%gpuwatch` on: for their cells the GPUs are read without a view.

They are read while a cell runs and for some time after, in which a person reads,
changes a line and runs the next. Then they rest until one runs again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.kernels import RunningKernel

_log = logging.getLogger(__name__)

_PERIOD_S = 3.0
#: a cell is noticed so long after it began
_LOOK_S = 0.25
_REST_AFTER_S = 30.0


class UnknownKernel(Exception):
    """This server does not run the kernel, so it could not see it end."""


class KernelWatch:
    """Has the GPUs read for these kernels until each is off, dead or restarted."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        kernels: Callable[[], Awaitable[Sequence[RunningKernel]]],
        runs_code: Callable[[str], bool],
    ) -> None:
        """Prepare.

        Args:
            broadcaster: reads the GPUs.
            kernels: lists all kernels, which takes long.
            runs_code: tells whether the kernel with this id is at work, at once.
        """
        self._lease = broadcaster.demand.lease("receipts")
        self._kernels = kernels
        self._runs_code = runs_code
        #: by id, the process: one that was restarted has another, and no magic on
        self._watching: dict[str, int | None] = {}
        #: when a cell of one of them was last seen to run
        self._active_s = 0.0
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
        self._active_s = time.monotonic()
        self._lease.begin()
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check())

    def turn_off(self, kernel_id: str) -> None:
        self._watching.pop(kernel_id, None)
        if not self._watching:
            self._lease.end()

    def close(self) -> None:
        """Ask after the kernels no more."""
        if self._checking is not None:
            self._checking.cancel()

    async def _check(self) -> None:
        while self._watching:
            until_s = time.monotonic() + _PERIOD_S
            try:
                while self._watching and time.monotonic() < until_s:
                    await asyncio.sleep(_LOOK_S)
                    self._look()
                running = await self._running()
            except Exception:  # noqa: BLE001 - else the GPUs would be read for ever
                _log.exception("Asking after the kernels failed; asked again.")
                continue
            for kernel_id, pid in tuple(self._watching.items()):
                if kernel_id not in running or running[kernel_id] != pid:
                    self.turn_off(kernel_id)

    def _look(self) -> None:
        now_s = time.monotonic()
        if any(map(self._runs_code, self._watching)):
            self._active_s = now_s
            self._lease.begin()
        elif now_s - self._active_s > _REST_AFTER_S:
            self._lease.end()

    async def _running(self) -> dict[str, int | None]:
        return {kernel.id: kernel.pid for kernel in await self._kernels()}
