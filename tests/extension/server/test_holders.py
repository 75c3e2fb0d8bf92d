"""Whose memory it is: real kernels of a real server on the stub library's GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace

import psutil
import pytest

from tests.stub_nvml import NOT_SUPPORTED, StubNvml
from warpbook.protocol import Allocator
from warpbook.server.memory.holder_watch import HolderWatch
from warpbook.server.stream.stream_part import StreamPart

GIB = 2**30
GPU, SECOND = (f"gpu:GPU-57ab0000-0000-4000-8000-{index:012}" for index in (0, 1))
LIST = "nvmlDeviceGetComputeRunningProcesses_v3"
#: beyond what a PID can be on Linux, and no driver's way to say "none"
NOWHERE = 2**22 + 7


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    stub = make_stub_nvml("h200", "a100")
    stub.set(0, memory_used_bytes=40 * GIB)
    return stub


@pytest.fixture
def ask(jp_fetch):
    async def ask(*path: str, method: str = "GET", body=None) -> dict:
        text = None if body is None else json.dumps(body)
        response = await jp_fetch(*path, method=method, body=text)
        return json.loads(response.body)

    return ask


@pytest.fixture
def holders(ask):
    async def holders() -> dict:
        return (await ask("warpbook", "api", "v1", "holders"))["devices"]

    return holders


@pytest.fixture
def notebook(ask, jp_serverapp):
    """Start a notebook's kernel; give the kernel's id and PID."""

    async def notebook(path: str) -> tuple[str, int]:
        wanted = {"path": path, "name": "", "type": "notebook"}
        wanted |= {"kernel": {"name": "python3"}}
        session = await ask("api", "sessions", method="POST", body=wanted)
        kernel_id = session["kernel"]["id"]
        kernel = jp_serverapp.kernel_manager.get_kernel(kernel_id)
        return kernel_id, kernel.provisioner.pid

    return notebook


@pytest.fixture
def watch(jp_serverapp) -> HolderWatch:
    (app,) = jp_serverapp.extension_manager.extension_apps["warpbook"]
    return app._holders


@contextlib.contextmanager
def program(**kwargs) -> Iterator[int]:
    """A program of ours that runs for a while."""
    command = [sys.executable, "-c", "print(flush=True); import time; time.sleep(99)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, **kwargs) as child:
        child.stdout.readline()
        yield child.pid
        child.kill()


@contextlib.contextmanager
def other_users_program() -> Iterator[int]:
    if os.geteuid() != 0:
        yield 1
        return
    with subprocess.Popen(["sleep", "99"], user=65534) as child:
        yield child.pid
        child.kill()


def by_kind(holders_view: dict, kind: str) -> list[dict]:
    return [holder for holder in holders_view["holders"] if holder["kind"] == kind]


async def test_memory_is_traced_to_notebooks_programs_and_others(
    connect, holders, notebook, stub
) -> None:
    kernel_id, kernel_pid = await notebook("work/train.ipynb")
    client = await connect()
    await client.subscribe()
    with program() as ours, other_users_program() as other:
        held = [(kernel_pid, 10), (ours, 3), (other, 5), (NOWHERE, 7), (0, 1)]
        stub.hold(0, *((pid, gib * GIB) for pid, gib in held))
        # for the view they are read now and then: this may be what was read before
        await holders()
        of_gpu = (await holders())[GPU]
        assert [holder["used_bytes"] / GIB for holder in of_gpu["holders"]] == [
            10,
            5,
            3,
        ]
        # 40 GiB are used; of 8 the driver tells PIDs that are nobody's here
        assert of_gpu["unattributed_bytes"] == 22 * GIB
        notes = " ".join(of_gpu["notes"])
        assert "a process with 7.00 GiB" in notes
        assert "no PID for a process with 1.00 GiB" in notes

        (kernel,) = by_kind(of_gpu, "kernel")
        assert kernel["name"] == "work/train.ipynb"
        assert (kernel["kernel_id"], kernel["pids"]) == (kernel_id, [kernel_pid])
        assert kernel["execution_state"] in ("starting", "idle", "busy")
        (mine,) = by_kind(of_gpu, "program")
        assert (mine["pids"], mine["name"][:6]) == ([ours], "python")
        assert by_kind(of_gpu, "other_users") == [
            {
                **mine,
                "kind": "other_users",
                "name": "other users",
                "used_bytes": 5 * GIB,
                "pids": [],
                "user": None,
            }
        ]

        # every view is told too, one that comes later at once
        while (await client.next("holders"))["devices"].get(GPU) != of_gpu:
            pass
        late = await connect()
        assert GPU in (await late.next("holders"))["devices"]


async def test_what_a_kernel_started_is_the_kernels(
    holders, notebook, jp_ws_fetch, stub
) -> None:
    kernel_id, pid = await notebook("parent.ipynb")
    kernel = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    await run(kernel, "import subprocess; subprocess.Popen(['sleep', '99'])")
    (child,) = [
        process_child.pid
        for process_child in psutil.Process(pid).children()
        if process_child.name() == "sleep"
    ]
    stub.hold(1, (child, 2 * GIB), (pid, GIB))
    (holder,) = (await holders())[SECOND]["holders"]
    assert (holder["name"], holder["used_bytes"]) == ("parent.ipynb", 3 * GIB)
    assert holder["pids"] == sorted([pid, child])
    while holder["execution_state"] != "idle":
        (holder,) = (await holders())[SECOND]["holders"]
    assert 0 <= holder["idle_s"] < 60
    psutil.Process(child).kill()
    kernel.close()


@pytest.mark.parametrize("warpbook_config", [{"other_users": "names"}])
async def test_the_policy_may_name_other_users(holders, stub, warpbook_config) -> None:
    with other_users_program() as pid:
        stub.hold(0, (pid, 5 * GIB))
        (holder,) = (await holders())[GPU]["holders"]
    process = psutil.Process(1) if pid == 1 else None
    assert holder["kind"] == "other_users"
    assert holder["name"] == (process.name() if process else "sleep")
    assert (holder["pids"], holder["used_bytes"]) == ([pid], 5 * GIB)
    assert holder["user"]


class TestUnderAHub:
    @pytest.fixture(autouse=True)
    def hub(self, monkeypatch) -> None:
        monkeypatch.setenv("JUPYTERHUB_USER", "alice")

    @pytest.fixture
    def jp_server_config(self, hub, stub, jp_server_config) -> dict:
        return jp_server_config

    async def test_another_hub_users_program_is_theirs(self, holders, stub) -> None:
        theirs = {**os.environ, "JUPYTERHUB_USER": "bob"}
        with program() as ours, program(env=theirs) as bobs:
            stub.hold(0, (ours, GIB), (bobs, 2 * GIB))
            of_gpu = (await holders())[GPU]
        (mine,) = by_kind(of_gpu, "program")
        assert (mine["pids"], mine["user"]) == ([ours], "alice")
        (other,) = by_kind(of_gpu, "other_users")
        assert (other["used_bytes"], other["pids"]) == (2 * GIB, [])
        assert "bob" not in json.dumps(of_gpu)

    async def test_one_that_says_nothing_is_nobodys_we_know(
        self, holders, stub
    ) -> None:
        """At 4c6eb8b a cleaned environment made it one's own, with name and PID."""
        # it is no child of this server, and of the same system user as everybody
        started = subprocess.run(
            ["sh", "-c", "env -i sleep 600 >/dev/null 2>&1 & echo $!"],
            capture_output=True,
            text=True,
            check=True,
        )
        pid = int(started.stdout)
        try:
            stub.hold(0, (pid, GIB))
            of_gpu = (await holders())[GPU]
        finally:
            os.kill(pid, signal.SIGKILL)
        (other,) = of_gpu["holders"]
        assert (other["kind"], other["pids"]) == ("other_users", [])
        assert "sleep" not in json.dumps(of_gpu)


async def test_a_kernel_of_another_server_names_its_notebook(holders, stub) -> None:
    there = {**os.environ, "JPY_SESSION_NAME": "/home/me/other.ipynb"}
    with program(env=there) as pid:
        stub.hold(0, (pid, GIB))
        (holder,) = (await holders())[GPU]["holders"]
    assert holder["kind"] == "program"
    assert holder["name"].endswith(", from other.ipynb")


class TestWithMig:
    @pytest.fixture
    def stub(self, make_stub_nvml) -> StubNvml:
        stub = make_stub_nvml("h200")
        stub.set(0, mig=1)
        return stub

    async def test_each_instance_has_its_own_holders(self, holders, stub) -> None:
        with program() as ours:
            for slot in (0, 1):
                instance = stub.make_instance(0, slot)
                instance.memory_used_bytes = (slot + 1) * GIB
                instance.pid = (NOWHERE, ours)[slot]
            by_device = await holders()
            first, second = (
                of_device for id_, of_device in by_device.items() if id_[:3] == "mig"
            )
        assert (first["holders"], first["unattributed_bytes"]) == ([], GIB)
        assert "a process with 1.00 GiB" in first["notes"][0]
        assert [holder["pids"] for holder in second["holders"]] == [[ours]]
        assert second["unattributed_bytes"] == 0
        assert (
            "the holders of memory are listed for each instance"
            in by_device[GPU]["notes"][0]
        )


async def test_sizes_that_the_driver_keeps_are_unknown(holders, stub) -> None:
    with program() as ours:
        stub.hold(0, (ours, 2**64 - 1))
        of_gpu = (await holders())[GPU]
    assert of_gpu["holders"][0]["used_bytes"] is None
    assert of_gpu["unattributed_bytes"] is None


async def test_a_gpu_that_shares_the_hosts_memory(holders, stub) -> None:
    for call in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        stub.fault(call, rc=NOT_SUPPORTED)
    with program() as ours:
        stub.hold(0, (ours, GIB))
        of_gpu = (await holders())[GPU]
    assert of_gpu["holders"][0]["used_bytes"] == GIB
    assert of_gpu["unattributed_bytes"] is None
    assert "share" in of_gpu["notes"][0]


async def test_a_driver_that_hangs_on_one_gpu_hides_only_that(holders, stub) -> None:
    await holders()
    with program() as ours:
        stub.hold(0, (ours, GIB))
        stub.fault(LIST, delay_ms=600_000, gpu=1)
        by_device = await holders()
        # a busy machine may take as long for the other
        while not by_device[GPU]["holders"]:
            by_device = await holders()
        stub.fault(LIST)
    assert [holder["used_bytes"] for holder in by_device[GPU]["holders"]] == [GIB]
    assert by_device[SECOND]["holders"] == []
    assert "does not answer" in by_device[SECOND]["notes"][0]


async def test_torchs_count_is_shown_until_the_kernel_is_another(
    ask, connect, holders, notebook, stub, watch, jp_serverapp
) -> None:
    kernel_id, pid = await notebook("torch.ipynb")
    stub.hold(0, (pid, 10 * GIB))
    await holders()
    uuid = GPU.removeprefix("gpu:GPU-")  # as CUDA writes it
    count = Allocator(0, uuid, 6 * GIB, 16 * GIB, 8 * GIB, 0)
    watch.note_allocators(kernel_id, [count])
    (holder,) = (await holders())[GPU]["holders"]
    assert holder["allocated_bytes"] == 6 * GIB
    assert holder["reserved_bytes"] == 16 * GIB
    client = await connect()
    await client.subscribe()
    said = ""
    while "torch keeps 10.0 GiB of it in reserve" not in said:
        said = (await client.next("outlook"))["devices"][GPU]["sentence"]
    await ask("api", "kernels", kernel_id, "restart", method="POST", body={})
    restarted = jp_serverapp.kernel_manager.get_kernel(kernel_id).provisioner.pid
    assert restarted != pid
    stub.hold(0, (restarted, 10 * GIB))
    # for the view they are read now and then: this may be what was read before
    await holders()
    (holder,) = (await holders())[GPU]["holders"]
    assert (holder["name"], holder["allocated_bytes"]) == ("torch.ipynb", None)


async def test_torchs_count_of_a_kernel_that_is_gone_is_not_kept(watch) -> None:
    watch.note_allocators("gone before anybody looked", ())
    await watch.read()
    assert watch._counted() == {}


@pytest.mark.parametrize("step_s", [-3600, 3600])
async def test_what_nobody_watched_for_long_is_not_told_to_a_new_view(
    connect, watch, monkeypatch, step_s
) -> None:
    client = await connect()
    await client.subscribe()
    await client.next("outlook")
    await client.next("holders")
    await client.send({"type": "unsubscribe"})
    client.socket.close()
    while watch._broadcaster.demand.is_awake:
        await asyncio.sleep(0.1)
    later = SimpleNamespace(time=lambda: time.time() + step_s)
    monkeypatch.setattr("warpbook.server.memory.holder_watch.time", later)
    monkeypatch.setattr("warpbook.server.memory.outlook.time", later)
    kinds = [
        json.loads(greeting)["type"] for greeting in watch._broadcaster.greetings()
    ]
    assert sorted(kinds) == ["alerts", "keeping"]


async def test_for_scrapes_alone_nobody_lists_processes(connect, watch) -> None:
    watch._broadcaster.demand.lease("Prometheus").begin_for(150)
    frames: list[object] = []
    part = StreamPart()
    part.follow = frames.append
    watch._broadcaster.attach(part)
    while len(frames) < 5:
        await asyncio.sleep(0.1)
    assert watch._reading is None
    client = await connect()
    await client.subscribe()
    await client.next("holders")


async def test_the_state_tells_holders_and_outlook(ask, connect, stub) -> None:
    client = await connect()
    await client.subscribe()
    outlook = await client.next("outlook")
    assert outlook["devices"][GPU]["used_bytes"] == 40 * GIB
    with program() as ours:
        stub.hold(0, (ours, GIB))
        for _ in range(400):
            state = await ask("warpbook", "api", "v1", "state")
            if state["holders"][GPU]["holders"]:
                break
            await asyncio.sleep(0.25)
    assert state["holders"][GPU]["holders"][0]["pids"] == [ours]
    assert "40.0 GiB" in state["outlook"][GPU]["sentence"]


async def run(kernel, code: str) -> None:
    """Run a cell to its end."""
    header = {"msg_id": "m", "msg_type": "execute_request", "session": "s"}
    header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
    content = {"code": code, "silent": False, "store_history": False}
    content |= {"user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
    message = {"header": header, "parent_header": {}, "metadata": {}, "buffers": []}
    await kernel.write_message(
        json.dumps({**message, "content": content, "channel": "shell"})
    )
    while json.loads(await kernel.read_message())["msg_type"] != "execute_reply":
        pass
