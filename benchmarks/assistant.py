"""What tools answer an assistant: bytes and tokens by tool, and how soon in a cell.

    python -m benchmarks.assistant [--calls N]

A real Jupyter server on the stub's GPU, asked by the client of the package `mcp` over
HTTP. A kernel sleeps in a cell all the while. Reports are of traces in tests/data.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2
import websocket
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.machine import describe_machine
from tests.server_process import TOKEN, ServerProcess, server
from tests.stub_nvml import StubNvml, build
from warpbook.mcp.answer import BYTES_PER_TOKEN, DEFAULT_TOKENS

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT / "tests" / "data" / "traces"
HEADERS = {"Authorization": f"token {TOKEN}"}
#: by tool, what is asked of it
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gpus_now", {}),
    ("cells", {}),
    ("report", {"trace": "train_fp32.json.gz"}),
    ("kernels", {"trace": "train_fp32.json.gz"}),
    (
        "compare",
        {"before_trace": "tiny_kernels.json.gz", "after_trace": "graph_replay.json.gz"},
    ),
    ("checklist", {"trace": "train_fp32.json.gz"}),
    ("memory", {"model": "llama-3-8b", "gpu_size": "80GB"}),
    ("explain", {"term": "launch-bound"}),
    ("labs", {}),
)
#: of text like ours, about
USUAL_BYTES_PER_TOKEN = 3.5


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description="Measure what tools answer.")
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    print(describe_machine(), "\n")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        stub = StubNvml(build(Path(folder)), Path(folder) / "state", "h200")
        for trace in TRACES.glob("*.json.gz"):
            shutil.copy(trace, home)
        with server(home, stub) as running:
            blocked = _block(running)
            asyncio.run(_measure(running.url, options.calls))
            blocked.close()


def _block(running: ServerProcess) -> websocket.WebSocket:
    """Have a kernel sleep in a cell."""
    kernel = running.post("api/kernels", {"name": "python3"}).json()["id"]
    url = running.url.replace("http", "ws", 1)
    socket = websocket.create_connection(
        f"{url}/api/kernels/{kernel}/channels?token={TOKEN}", timeout=60
    )
    code = "import time\nprint('begun', flush=True)\ntime.sleep(3600)"
    header = {"msg_id": "m", "msg_type": "execute_request", "session": "s"}
    content = {"code": code, "silent": False}
    message = {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
    }
    socket.send(json.dumps({**message, "channel": "shell"}))
    while json.loads(socket.recv())["msg_type"] != "stream":
        pass
    return socket


async def _measure(url: str, calls: int) -> None:
    http = httpx2.AsyncClient(headers=HEADERS, timeout=120, trust_env=False)
    route = f"{url}/warpbook/api/v1/mcp"
    async with http, Client(streamable_http_client(route, http_client=http)) as client:
        listed = (await client.list_tools()).model_dump_json(exclude_none=True)
        print("| tool | bytes | tokens, as counted | tokens, about | all of it |")
        print("| --- | --- | --- | --- | --- |")
        _row("the list of tools, once", len(listed.encode()), True)
        for tool, arguments in ASKED:
            answer = await client.call_tool(tool, arguments)
            (text,) = answer.content
            if answer.is_error:
                raise RuntimeError(f"{tool}: {text.text}")
            is_whole = "cursor" not in (answer.structured_content or {})
            _row(f"`{tool}`", len(text.text.encode()), is_whole)
        first_ms = await _timed(client)
        times_ms = sorted([await _timed(client) for _ in range(calls)])
    print(f"\n`gpus_now`, {calls} calls in turn while a cell blocks the kernel:\n")
    print("| the call before them, ms | p50, ms | p95, ms | longest, ms |")
    print("| --- | --- | --- | --- |")
    p95_ms = times_ms[int(0.95 * (len(times_ms) - 1))]
    p50_ms = statistics.median(times_ms)
    figures = (first_ms, p50_ms, p95_ms, times_ms[-1])
    print(f"| {' | '.join(f'{figure:.1f}' for figure in figures)} |")


def _row(what: str, size_bytes: int, is_whole: bool) -> None:
    counted = -(-size_bytes // BYTES_PER_TOKEN)
    about = round(size_bytes / USUAL_BYTES_PER_TOKEN)
    whole = "yes" if is_whole else f"a page of {DEFAULT_TOKENS:,}"
    print(f"| {what} | {size_bytes:,} | {counted:,} | {about:,} | {whole} |")


async def _timed(client: Client) -> float:
    begin_s = time.perf_counter()
    answer = await client.call_tool("gpus_now", {})
    assert not answer.is_error
    return (time.perf_counter() - begin_s) * 1000


if __name__ == "__main__":
    main()
