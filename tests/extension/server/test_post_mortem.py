"""A real kernel runs out of GPU memory: who held what, told there and elsewhere."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.monitors.memory.test_post_mortem import TORCH
from tests.stub_nvml import StubNvml

GIB = 2**30
GPU = "gpu:GPU-57ab0000-0000-4000-8000-000000000000"
RUNS_OUT = f"import torch\nraise torch.OutOfMemoryError({TORCH!r})"


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200")


@pytest.fixture
def notebook(jp_fetch, jp_ws_fetch, jp_serverapp):
    """Start a notebook's kernel; give its PID and its channels."""

    async def notebook(path: str):
        body = {"path": path, "name": "", "type": "notebook"}
        body |= {"kernel": {"name": "python3"}}
        response = await jp_fetch(
            "api", "sessions", method="POST", body=json.dumps(body)
        )
        kernel_id = json.loads(response.body)["kernel"]["id"]
        kernel = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
        manager = jp_serverapp.kernel_manager.get_kernel(kernel_id)
        return manager.provisioner.pid, kernel

    return notebook


@pytest.fixture
def tell(ingest):
    """Hand a failed allocation in, as the kernel does."""

    async def tell(body: bytes):
        try:
            kernel_id = json.loads(body)["kernel_id"]
        except (ValueError, KeyError, TypeError):
            kernel_id = "k"
        return await ingest("/v1/out-of-memory", body, kernel_id=kernel_id)

    return tell


async def run(kernel, code: str) -> list[dict]:
    """Run a cell; give its outputs and, last, its reply."""
    header = {"msg_id": code[:20], "msg_type": "execute_request", "session": "s"}
    header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
    content = {"code": code, "silent": False, "store_history": True}
    content |= {"user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
    message = {"header": header, "parent_header": {}, "buffers": []}
    message |= {"metadata": {"cellId": "cell-7"}, "content": content}
    await kernel.write_message(json.dumps({**message, "channel": "shell"}))
    outputs, reply = [], None
    while True:
        came = json.loads(await kernel.read_message())
        kind = came["msg_type"]
        if came["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        if kind in ("error", "display_data", "stream"):
            outputs.append(came["content"])
        if kind == "execute_reply":
            reply = came["content"]
        if kind == "status" and came["content"]["execution_state"] == "idle":
            break
    while reply is None:
        came = json.loads(await kernel.read_message())
        if came["msg_type"] == "execute_reply":
            reply = came["content"]
    return [*outputs, reply]


async def test_a_cell_that_ran_out_is_told_who_held_what(
    connect, notebook, stub
) -> None:
    ours, kernel = await notebook("work/<b>train</b>.ipynb")
    with subprocess.Popen(["sleep", "99"]) as program:
        stub.set(0, memory_used_bytes=139 * GIB)
        stub.hold(0, (ours, 132 * GIB), (program.pid, 6 * GIB))
        client = await connect()
        await client.next("hello")
        await run(kernel, "%load_ext warpbook")
        traceback, display, reply = await run(kernel, RUNS_OUT)
        program.kill()
    # the cell's own exception is as ever, and above
    assert (traceback["ename"], traceback["evalue"]) == ("OutOfMemoryError", TORCH)
    assert (reply["status"], reply["ename"]) == ("error", "OutOfMemoryError")
    text, html = display["data"]["text/plain"], display["data"]["text/html"]
    assert "20.0 GiB was asked for on GPU 0 (NVIDIA H200)" in text
    assert "This notebook itself holds most of it, 132 GiB" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["132", "GiB", "work/<b>train</b>.ipynb,"] in [row[:3] for row in rows]
    assert ["6.00", "GiB", "sleep"] in [row[:3] for row in rows]
    assert "torch uses 124 GiB of 130 GiB" in text
    assert "<b>train" not in html and "&lt;b&gt;train" in html

    message = await client.next("post_mortem")
    assert message["notebook"] == "work/<b>train</b>.ipynb"
    assert (message["device"], message["cell_id"]) == (GPU, "cell-7")
    assert message["asked_bytes"] == 20 * GIB
    assert message["sentence"] in text
    assert [holder["used_bytes"] for holder in message["holders"]["holders"]] == [
        132 * GIB,
        6 * GIB,
    ]
    late = await connect()
    assert await late.next("post_mortem") == message

    # a cell that fails otherwise is left alone
    traceback, reply = await run(kernel, "1 / 0")
    assert traceback["ename"] == "ZeroDivisionError"
    kernel.close()


async def test_only_the_newest_few_are_kept(connect, tell) -> None:
    for number in range(7):
        failed = {"asked_bytes": number * GIB}
        failure = {"protocol": 1, "kernel_id": "k", "notebook": None, "cell_id": None}
        answer = await tell(json.dumps({**failure, "failed": failed}).encode())
        assert answer.code == 200
    client = await connect()
    sizes = [(await client.next("post_mortem"))["asked_bytes"] for _ in range(5)]
    assert sizes == [number * GIB for number in range(2, 7)]


@pytest.mark.parametrize("body", [b"", b"[]", b"garbage", b'{"protocol": 1}'])
async def test_garbage_is_refused(tell, body) -> None:
    answer = await tell(body)
    assert answer.code == 400
    assert "Not a failed allocation" in json.loads(answer.body)["message"]


async def test_a_kernel_of_another_version_is_told(tell) -> None:
    answer = await tell(b'{"protocol": 99}')
    assert answer.code == 409
    assert "same warpbook" in json.loads(answer.body)["message"]


class TestInAReplay:
    @pytest.fixture
    def stub(self) -> None:
        """No GPU, so the recording is played."""

    async def test_a_replayed_gpu_is_not_the_one_that_was_full(
        self, tell, jp_fetch
    ) -> None:
        failure = {"protocol": 1, "kernel_id": "k", "notebook": "a.ipynb"}
        failure |= {"cell_id": None, "failed": {"asked_bytes": GIB, "device_index": 0}}
        answer = json.loads((await tell(json.dumps(failure).encode())).body)
        assert (answer["device"], answer["holders"]) == (None, None)
        assert answer["notebook"] == "a.ipynb"
        assert answer["sentence"].startswith("1.00 GiB was asked for on the GPU.")
        response = await jp_fetch("warpbook", "api", "v1", "holders")
        devices = json.loads(response.body)["devices"]
        assert devices
        for held in devices.values():
            assert (held["holders"], held["unattributed_bytes"]) == ([], None)
            assert held["notes"] == ["A recording does not tell who held the memory."]
