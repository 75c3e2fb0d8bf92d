"""Kernels that ask for the GPUs to be read, until they are off or gone."""

import asyncio
import json

import pytest

from warpbook.protocol import PROTOCOL_VERSION


async def test_a_kernel_that_is_not_the_servers_is_not_watched(ingest) -> None:
    request = {"protocol": PROTOCOL_VERSION, "kernel_id": "nobody", "on": True}
    response = await ingest("/v1/watch", request)
    assert response.code == 422
    assert "Start the kernel" in json.loads(response.body)["message"]
    assert (await ingest("/v1/watch", {**request, "on": False})).code == 204


async def test_a_failed_question_after_the_kernels_is_asked_again(
    ingest, jp_serverapp, monkeypatch
) -> None:
    monkeypatch.setattr("warpbook.server.stream.kernel_watch._PERIOD_S", 0.1)
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    watch = app._kernel_watch
    kernel_id = await jp_serverapp.kernel_manager.start_kernel()
    request = {"protocol": PROTOCOL_VERSION, "kernel_id": kernel_id, "on": True}
    assert (await ingest("/v1/watch", request)).code == 204
    asking, failures = watch._kernels, []

    async def fail_once() -> list:
        if not failures:
            failures.append("once")
            raise OSError("the database of sessions is locked")
        return await asking()

    monkeypatch.setattr(watch, "_kernels", fail_once)
    while not failures:
        await asyncio.sleep(0.1)
    await jp_serverapp.kernel_manager.shutdown_kernel(kernel_id, now=True)
    while app._broadcaster.demand.is_awake:
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("how", ["off", "dies", "restarts"])
async def test_the_gpus_are_read_until_the_kernel_is_off_or_gone(
    ingest, jp_serverapp, monkeypatch, how
) -> None:
    monkeypatch.setattr("warpbook.server.stream.kernel_watch._PERIOD_S", 0.1)
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    kernels = jp_serverapp.kernel_manager
    kernel_id = await kernels.start_kernel()
    request = {"protocol": PROTOCOL_VERSION, "kernel_id": kernel_id, "on": True}
    assert (await ingest("/v1/watch", request)).code == 204
    await asyncio.sleep(0.5)
    assert app._broadcaster.demand.is_awake, (
        "while the kernel is on and no view is open"
    )
    if how == "off":
        assert (await ingest("/v1/watch", {**request, "on": False})).code == 204
    elif how == "dies":
        await kernels.shutdown_kernel(kernel_id, now=True)
    else:
        await kernels.restart_kernel(kernel_id, now=True)
    while app._broadcaster.demand.is_awake:
        await asyncio.sleep(0.1)
    if how != "dies":
        await kernels.shutdown_kernel(kernel_id, now=True)


async def test_the_gpus_rest_between_cells_of_a_kernel_that_is_on(
    ingest, jp_serverapp, jp_ws_fetch, monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr("warpbook.server.stream.kernel_watch._REST_AFTER_S", 0.5)
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    kernels = jp_serverapp.kernel_manager
    kernel_id = await kernels.start_kernel()
    socket = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    request = {"protocol": PROTOCOL_VERSION, "kernel_id": kernel_id, "on": True}
    assert (await ingest("/v1/watch", request)).code == 204
    assert app._broadcaster.demand.is_awake
    while app._broadcaster.demand.is_awake:
        await asyncio.sleep(0.1)
    assert kernels.get_kernel(kernel_id).execution_state == "idle"

    for number in range(2):
        may_end = tmp_path / f"may-end-{number}"
        header = {"msg_id": f"m{number}", "msg_type": "execute_request"}
        header |= {"session": "s", "username": "", "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": {}}
        message |= {"channel": "shell", "buffers": [], "content": {"silent": False}}
        message["content"] |= {
            "code": "import pathlib, time\n"
            f"while not pathlib.Path({str(may_end)!r}).exists(): time.sleep(0.05)"
        }
        await socket.write_message(json.dumps(message))
        while not app._broadcaster.demand.is_awake:
            await asyncio.sleep(0.1)
        # on to the end of the cell, and a while after it
        assert kernels.get_kernel(kernel_id).execution_state == "busy"
        may_end.touch()
        while app._broadcaster.demand.is_awake:
            await asyncio.sleep(0.1)
        assert kernels.get_kernel(kernel_id).execution_state == "idle"
    socket.close()
    await kernels.shutdown_kernel(kernel_id, now=True)
