"""Who holds the memory of each GPU, told every two seconds while somebody watches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from jupyter_server.auth.decorator import authorized
from msgspec.structs import replace
from tornado import web

from warpbook.protocol import Allocator, Device, DeviceHolders, Frame, Holders, StateNow
from warpbook.server.memory.attribution import Attribution, with_allocators
from warpbook.server.records.rest import Handler
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.demand import ALERT_RULES, PAGES
from warpbook.server.stream.kernels import RunningKernel
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.attempt import Attempt
from warpbook_monitors.errors import MonitorError, NoReading, Unavailable
from warpbook_monitors.nvml.processes import read_processes
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.sampling.sampler import Message

_log = logging.getLogger(__name__)

PERIOD_MS = 2000.0
#: a call that hangs holds up no more than one round
_PATIENCE_S = 3.0
#: what is older says how things were
_FRESH_MS = 3 * PERIOD_MS

_REPLAY = DeviceHolders((), None, ("A recording does not tell who held the memory.",))
_SILENT = DeviceHolders(
    (), None, ("The driver does not answer, so who holds the memory is not known.",)
)

Kernels = Callable[[], Awaitable[Sequence[RunningKernel]]]


class HolderWatch(StreamPart):
    """Reads and tells the holders; on the event loop, but for the reading itself."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        kernels: Kernels,
        attribution: Attribution,
        costs: Costs,
    ) -> None:
        self._broadcaster = broadcaster
        self._kernels = kernels
        self._attribution = attribution
        self._costs = costs
        self._attempts: dict[str, Attempt[DeviceHolders | None]] = {}
        #: by kernel, with the PID of the kernel that told them: it may be restarted
        self._allocators: dict[str, tuple[int | None, tuple[Allocator, ...]]] = {}
        self._pids: dict[str, int | None] = {}
        self._told = Holders(0.0, {})
        self._asked_ms = 0.0
        self._reading: asyncio.Task[Holders] | None = None
        self._closed = False
        broadcaster.attach(self)

    @property
    def newest(self) -> Holders | None:
        """What was told last; None if that is too long ago to be true."""
        # absolute, because the clock may be set back
        age_ms = abs(time.time() * 1000 - self._told.time_ms)
        return self._told if age_ms < _FRESH_MS else None

    async def read(self) -> Holders:
        """Find out who holds memory now."""
        await self._broadcaster.ready()
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(self._reading)

    def note_allocators(self, kernel_id: str, allocators: Sequence[Allocator]) -> None:
        """Keep what torch counted in a kernel, until the kernel is another process."""
        self._allocators[kernel_id] = (self._pids.get(kernel_id), tuple(allocators))

    async def close(self) -> None:
        """Start no reading any more, and wait for the one that runs."""
        self._closed = True
        if self._reading is not None:
            await asyncio.wait([self._reading])

    def follow(self, message: Message) -> None:
        """Read again when it is time, while somebody attends."""
        if not isinstance(message, Frame) or self._closed:
            return
        demand = self._broadcaster.demand
        if not demand.count(PAGES) and not demand.count(ALERT_RULES):
            # what is asked for once is read once
            return
        # absolute, because the clock may be set back
        if abs(message.time_ms - self._asked_ms) >= PERIOD_MS:
            self._asked_ms = message.time_ms
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read())
                self._reading.add_done_callback(_log_failure)

    def greeting(self) -> Iterable[bytes]:
        """Give the newest holders while they hold."""
        newest = self.newest
        return () if newest is None else (encode(newest),)

    async def complete(self, state: StateNow) -> StateNow:
        return replace(state, holders=(self.newest or await self.read()).devices)

    async def _read(self) -> Holders:
        kernels = await self._kernels()
        self._pids = {kernel.id: kernel.pid for kernel in kernels}
        time_ms = time.time() * 1000
        devices = [
            device
            for device in self._broadcaster.devices
            if device.kind in ("gpu", "mig")
        ]
        live = [device for device in devices if device.origin == "live"]
        holders_read = await asyncio.to_thread(self._ask, live, kernels)
        counted = self._counted()
        self._told = Holders(
            time_ms,
            {
                device.id: with_allocators(holders_read[device.id], device, counted)
                if device.origin == "live"
                else _REPLAY
                for device in devices
                if device.id in holders_read or device.origin == "replay"
            },
        )
        self._broadcaster.viewers.send_watching(encode(self._told))
        return self._told

    def _counted(self) -> dict[str, tuple[Allocator, ...]]:
        """Give torch's figures, and forget those of kernels that are gone."""
        for kernel_id, (pid, allocators) in tuple(self._allocators.items()):
            now = self._pids.get(kernel_id)
            if kernel_id not in self._pids or pid not in (None, now):
                del self._allocators[kernel_id]
            else:
                self._allocators[kernel_id] = (now, allocators)
        return {
            kernel_id: counted for kernel_id, (_, counted) in self._allocators.items()
        }

    def _ask(
        self, devices: Sequence[Device], kernels: Sequence[RunningKernel]
    ) -> dict[str, DeviceHolders]:
        """Ask the driver, for each device on a thread of its own: calls may hang."""
        for device in devices:
            before = self._attempts.get(device.id)
            if before is None or not before.is_running:
                self._attempts[device.id] = Attempt(
                    partial(self._ask_one, device, kernels), "warpbook-holders"
                )
        deadline_s = time.monotonic() + _PATIENCE_S
        holders_of = {}
        for device in devices:
            try:
                holders = self._attempts[device.id].outcome(deadline_s)
            except TimeoutError:
                holders = _SILENT
            if holders is not None:
                holders_of[device.id] = holders
        return holders_of

    def _ask_one(
        self, device: Device, kernels: Sequence[RunningKernel]
    ) -> DeviceHolders | None:
        """Ask about one device; None while it is not there."""
        cpu_s = time.thread_time()
        listed_s = time.time()
        try:
            processes = read_processes(device)
            return self._attribution.attribute(processes, listed_s, kernels)
        except (NoReading, Unavailable):
            return None
        except MonitorError as error:
            return DeviceHolders((), None, (str(error),))
        finally:
            self._costs.add_cpu(time.thread_time() - cpu_s)


def _log_failure(reading: asyncio.Task[Holders]) -> None:
    if not reading.cancelled() and (error := reading.exception()) is not None:
        _log.error("Finding out who holds memory failed.", exc_info=error)


class HoldersHandler(Handler):
    """`GET api/v1/holders`.

    Cost: one look at the processes, which all who ask meanwhile share.
    """

    _holders: HolderWatch

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Tell who holds the memory of each GPU now."""
        self.finish_json(encode(await self._holders.read()))
