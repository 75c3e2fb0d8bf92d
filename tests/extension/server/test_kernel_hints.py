"""What a server says to its hub of kernels: what it reads, and a hub that hangs."""

from __future__ import annotations

import asyncio
import threading
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest

from warpbook.kernel_hints_protocol import KernelHints
from warpbook.protocol import Device, DeviceHolders, Holder, Holders
from warpbook.server import kernel_hints
from warpbook.server.kernel_hints import HintSender
from warpbook.server.kernels import RunningKernel


class Hub:
    """Takes hints of activity, on the threads that it is asked from."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.said: asyncio.Future[KernelHints] = self._loop.create_future()

    def hint_policy(self) -> str:
        return "activity"

    def send_hints(self, hints: KernelHints) -> str:
        self._loop.call_soon_threadsafe(self.said.set_result, hints)
        return "activity"


class SilentHub:
    """Never answers until it is let."""

    def __init__(self) -> None:
        self.asking_threads: Queue[threading.Thread] = Queue()
        self.answers = threading.Event()

    def hint_policy(self) -> str:
        self.asking_threads.put(threading.current_thread())
        self.answers.wait()
        return "off"


async def test_a_hub_that_never_answers_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = SilentHub()
    monkeypatch.setattr(kernel_hints, "hub_here", lambda: hub)

    async def nobody() -> list[RunningKernel]:
        return []

    nothing: Any = SimpleNamespace()
    sender = HintSender(nothing, nothing, nobody)
    sender.start()
    thread = await asyncio.to_thread(hub.asking_threads.get)
    sender.close()
    # an interpreter that ends waits for every other kind of thread
    assert thread.daemon and thread.is_alive()
    hub.answers.set()
    await asyncio.to_thread(thread.join)


@pytest.mark.parametrize("is_watched", [True, False])
async def test_the_driver_is_asked_only_if_no_page_has_just_had_it_asked(
    monkeypatch: pytest.MonkeyPatch, is_watched: bool
) -> None:
    device = Device("gpu:GPU-1", "gpu", "H100", 0, "live", ())
    holder = Holder("kernel", "train.ipynb", pids=(7,), used_bytes=1, kernel_id="k")
    holders = Holders(0.0, {device.id: DeviceHolders((holder,), 1)})
    readings = []

    async def read() -> Holders:
        readings.append("of the driver")
        return holders

    async def kernels() -> list[RunningKernel]:
        return [RunningKernel("k", 7, "train.ipynb", "train.ipynb", "busy", None)]

    hub = Hub()
    monkeypatch.setattr(kernel_hints, "hub_here", lambda: hub)
    sender = HintSender(
        SimpleNamespace(devices=(device,)),  # type: ignore[arg-type]
        SimpleNamespace(  # type: ignore[arg-type]
            newest=holders if is_watched else None, read=read, hub_notice=""
        ),
        kernels,
    )
    sender.start()
    try:
        said = await asyncio.wait_for(hub.said, 60)
    finally:
        sender.close()
    assert [process.pid for process in said.kernels[0].processes] == [7]
    assert readings == ([] if is_watched else ["of the driver"])
