"""Says to the hub which kernels of its person have a GPU, where hub and person want it.

It is the person's own word; the hub has the facts from each node's agent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from warpbook.class_hub import ClassHub, HubProblem, hub_here
from warpbook.kernel_hints_protocol import (
    MOST_KERNELS,
    MOST_NOTEBOOK,
    MOST_PROCESSES,
    PERIOD_S,
    KernelHint,
    KernelHints,
    KernelProcess,
    Policy,
)
from warpbook.protocol import Device, Holder, Holders
from warpbook.server.broadcast import Broadcaster
from warpbook.server.draining import on_daemon_thread
from warpbook.server.holders import HolderWatch
from warpbook.server.kernels import RunningKernel
from warpbook_monitors.plain_text import bounded

_log = logging.getLogger(__name__)

#: between two looks for kernels that have a GPU
_LOOK_S = 10.0
#: a policy is asked for again after so long without a message
_POLICY_S = 10.0 * PERIOD_S
_THREAD = "warpbook-hints"
#: by what Jupyter calls it; of a kernel that starts or is gone nothing is said
_IS_BUSY = {"busy": True, "idle": False}
_HOW = (
    "It is shown to instructors, and to you on the hub's page GPUs. To stop it: "
    "c.WarpbookApp.kernel_hints = False."
)
#: for the person, below the list of who holds memory
_NOTICES: dict[Policy, str] = {
    "off": "",
    "activity": "This server reports to the hub whether these kernels are busy. "
    f"{_HOW}",
    "notebooks": "This server reports to the hub whether these kernels are busy, "
    f"and the names of their notebooks. {_HOW}",
}


class HintSender:
    """Asks the hub what it takes, and sends that once a minute; on the event loop."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        holders: HolderWatch,
        kernels: Callable[[], Awaitable[Sequence[RunningKernel]]],
    ) -> None:
        """Take who knows the GPUs, who holds them, and the person's kernels."""
        self._broadcaster, self._holders, self._kernels = broadcaster, holders, kernels
        self._server = secrets.token_hex(8)
        self._policy: Policy = "off"
        #: by `time.monotonic()`: when the next question and the next message may go
        self._ask_s = self._send_s = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if a hub with a course service has started this server."""
        try:
            hub = hub_here()
        except HubProblem as problem:
            _log.warning("The hub is sent no hints of kernels: %s", problem)
            return
        if hub is not None:
            self._task = asyncio.create_task(self._run(hub))

    def close(self) -> None:
        """End; the hub forgets what it was sent."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, hub: ClassHub) -> None:
        while True:
            try:
                await self._turn(hub)
            except HubProblem as problem:
                # the hub may be away, or older than this server
                _log.debug("No hint was sent: %s", problem)
            except Exception:  # noqa: BLE001 - one bad minute must not be the last
                _log.exception("Sending hints of kernels failed.")
            await asyncio.sleep(_LOOK_S)

    async def _turn(self, hub: ClassHub) -> None:
        now_s = time.monotonic()
        if now_s >= self._ask_s:
            # also where no answer comes
            self._ask_s = now_s + PERIOD_S
            self._note(await on_daemon_thread(hub.hint_policy, _THREAD))
        if self._policy == "off" or now_s < self._send_s:
            return
        file_names = {kernel.id: kernel.file_name for kernel in await self._kernels()}
        if not file_names:
            return
        if self._policy != "notebooks":
            file_names = {}
        # while a page watches, they have just been read
        holders = self._holders.newest or await self._holders.read()
        hints = _hints(self._broadcaster.devices, holders, file_names)
        if hints:
            self._send_s = now_s + PERIOD_S
            send = partial(hub.send_hints, KernelHints(self._server, hints))
            self._note(await on_daemon_thread(send, _THREAD))

    def _note(self, policy: Policy) -> None:
        self._ask_s = time.monotonic() + _POLICY_S
        self._policy = policy
        self._holders.hub_notice = _NOTICES[policy]


def _hints(
    devices: Iterable[Device], holders: Holders, file_names: Mapping[str, str]
) -> tuple[KernelHint, ...]:
    """Say of each kernel that has a GPU what may be said.

    Args:
        devices: with those of the holders.
        holders: as they were read.
        file_names: of notebooks, by their kernels' ids; without those not to be told.
    """
    kernels: dict[str, Holder] = {}
    processes: dict[str, list[KernelProcess]] = {}
    for device in devices:
        on_device = holders.devices.get(device.id)
        gpu = _gpu(device)
        for holder in () if on_device is None else on_device.holders:
            if holder.kind == "kernel" and holder.kernel_id is not None:
                kernels[holder.kernel_id] = holder
                of_kernel = processes.setdefault(holder.kernel_id, [])
                of_kernel += [KernelProcess(gpu, pid) for pid in holder.pids]
    return tuple(
        _hint(kernel, processes[kernel_id], file_names.get(kernel_id, ""))
        for kernel_id, kernel in list(kernels.items())[:MOST_KERNELS]
        if processes[kernel_id]
    )


def _hint(
    kernel: Holder, processes: Sequence[KernelProcess], notebook: str
) -> KernelHint:
    return KernelHint(
        tuple(processes[:MOST_PROCESSES]),
        is_busy=_IS_BUSY.get(kernel.execution_state or ""),
        idle_s=None if kernel.idle_s is None else round(kernel.idle_s),
        notebook=bounded(notebook, MOST_NOTEBOOK),
    )


def _gpu(device: Device) -> str:
    """Give the UUID of the whole GPU, as an agent names it."""
    whole = device.facts.get("parent") if device.kind == "mig" else device.id
    return bounded(str(whole).partition(":")[2])
