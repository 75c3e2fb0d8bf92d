"""What a server says to its hub of kernels: what it reads, and a hub that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.server_process import server
from warpbook.kernel_hints_protocol import KernelHints
from warpbook.protocol import Device, DeviceHolders, Holder, Holders
from warpbook.server import kernel_hints
from warpbook.server.kernel_hints import HintSender
from warpbook.server.kernels import RunningKernel


@contextlib.contextmanager
def silent_hub() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        yield listener


def test_a_hub_that_never_answers_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with silent_hub() as hub:
        variables = {
            "WARPBOOK_HUB_URL": f"http://127.0.0.1:{hub.getsockname()[1]}/hub/",
            "JUPYTERHUB_API_TOKEN": "token",
            "no_proxy": "127.0.0.1",
        }
        with server(tmp_path, variables=variables) as running:
            connection, _ = hub.accept()
            with connection:
                connection.settimeout(60)
                # it waits for the answer from here on
                assert b"kernel-hints" in connection.recv(1 << 16)
                running.process.send_signal(signal.SIGTERM)
                running.process.wait(60)
    # after its time to end it would have ended itself by force, and say so
    assert "Something hangs" not in (tmp_path / "server.log").read_text()


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
