"""The whole live path on a real GPU: values against NVIDIA's own tool, while cells run.

A real Jupyter server reads the real NVML, a real kernel runs the work, a WebSocket
client takes the frames. `pytest -m gpu -s tests/gpu/test_live_values.py` prints the
figures that are kept in docs/evidence/.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import platform
import re
import statistics
import subprocess
from dataclasses import dataclass, field

import pytest

pytestmark = pytest.mark.gpu

#: what each kind of cell runs, in steady state for as long as it is measured
CELLS = {
    "idle": "time.sleep(11)",
    "bf16 matmul": """
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
while time.monotonic() < end:
    for _ in range(50):
        y = x @ x
    torch.cuda.synchronize()
""",
    "device copy": """
x = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
y = torch.empty_like(x)
while time.monotonic() < end:
    for _ in range(50):
        y.copy_(x)
    torch.cuda.synchronize()
""",
    "pinned H2D copy": """
x = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
y = torch.empty_like(x, device="cuda")
while time.monotonic() < end:
    for _ in range(20):
        y.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
""",
    "launch-bound loop": """
x = torch.zeros(64, device="cuda")
while time.monotonic() < end:
    for _ in range(2000):
        x.add_(1)
""",
}
PREAMBLE = "import time, torch; end = time.monotonic() + 11\n"
#: name in a frame: (GPM metric id of `nvidia-smi dmon --gpm-metrics`, points per unit)
COMPARED = {
    "sm_active_ratio": (2, 100),
    "sm_occupancy_ratio": (3, 100),
    "tensor_active_ratio": (5, 100),
    "dram_active_ratio": (10, 100),
    "fp32_active_ratio": (12, 100),
    "pcie_rx_bytes_per_s": (21, 1 / 2**20),
}
SECONDS = 5


@dataclass
class Frames:
    """What the WebSocket delivered."""

    hello: dict = field(default_factory=dict)
    frames: list[dict] = field(default_factory=list)

    def mean(self, metric: str, since: int, kind: str = "gpu") -> float:
        """Mean of a metric over the frames since a place, on the first such device."""
        return statistics.fmean(self.values(metric, since, kind))

    def values(self, metric: str, since: int, kind: str = "gpu") -> list[float]:
        devices = self.hello["devices"]
        at = next(n for n, device in enumerate(devices) if device["kind"] == kind)
        column = [each["name"] for each in devices[at]["metrics"]].index(metric)
        return [
            reading["values"][column]
            for frame in self.frames[since:]
            for reading in frame["readings"]
            if reading["device"] == at
            and reading["state"] == "ok"
            and reading["values"][column] is not None
        ]


@pytest.fixture
def jp_server_config() -> dict:
    return {"ServerApp": {"jpserver_extensions": {"warpbook": True}}}


async def dmon() -> dict[int, float]:
    """Mean of what nvidia-smi reads of GPU 0 in the next seconds, by metric id."""
    ids = sorted(number for number, _ in COMPARED.values())
    listed = ",".join(map(str, ids))
    process = await asyncio.create_subprocess_exec(
        *("nvidia-smi", "dmon", "-i", "0", "-d", "1", "-c", str(SECONDS + 1)),
        *("-s", "u", "--gpm-metrics", listed, "--format", "csv,nounit"),
        stdout=subprocess.PIPE,
    )
    output = (await process.communicate())[0].decode()
    rows = [re.split(r"[,\s]+", line.strip()) for line in output.splitlines()]
    # the first row's window began before this one; the GPM columns are the last
    data = [row for row in rows if row and row[0] == "0"][1:]
    tails = [row[-len(ids) :] for row in data]
    assert tails, output
    return {
        number: statistics.fmean(float(row[at]) for row in tails if row[at] != "-")
        for at, number in enumerate(ids)
    }


async def test_frames_agree_with_nvidia_smi(jp_fetch, jp_ws_fetch) -> None:
    seen = Frames()
    socket = await jp_ws_fetch("warpbook", "api", "v1", "stream")

    async def collect() -> None:
        while (text := await socket.read_message()) is not None:
            message = json.loads(text)
            if message["type"] == "hello":
                seen.hello = message
            elif message["type"] == "frame":
                seen.frames.append(message)

    collecting = asyncio.create_task(collect())
    await socket.write_message('{"type":"subscribe","protocol":1,"rate_hz":10}')
    response = await jp_fetch("api", "kernels", method="POST", body="{}")
    kernel_id = json.loads(response.body)["id"]
    kernel = await jp_ws_fetch("api", "kernels", kernel_id, "channels")
    gpu = next(each for each in seen.hello["devices"] if each["kind"] == "gpu")
    print(f"\n{gpu['name']}, driver {gpu['facts']['driver_version']}, ", end="")
    print(f"Python {platform.python_version()}, ", end="")
    print(f"nvidia-ml-py {importlib.metadata.version('nvidia-ml-py')}")
    assert seen.hello["replay"] is None

    wrong = []
    for name, code in CELLS.items():
        await _execute(kernel, PREAMBLE + code)
        await asyncio.sleep(4)  # imports, warm-up, clocks
        reading = asyncio.create_task(dmon())
        await asyncio.sleep(1)  # its first second is left out, so is ours
        start = len(seen.frames)
        theirs = await reading
        ours = {m: seen.mean(m, start) * scale for m, (_, scale) in COMPARED.items()}
        span_s = (seen.frames[-1]["time_ms"] - seen.frames[start]["time_ms"]) / 1000
        rate = (len(seen.frames) - 1 - start) / span_s
        utilization = 100 * seen.mean("gpu_utilization_ratio", start)
        cpu = 100 * seen.mean("sampler_cpu_ratio", start, "monitor")
        tick = seen.values("tick_ms", start, "monitor")
        lag = max(seen.values("loop_lag_ms", start, "monitor"))
        print(
            f"{name}: asked 10/s, delivered {rate:.2f}/s; NVML utilization "
            f"{utilization:.0f} %; sampler {cpu:.2f} % of a core, tick "
            f"{statistics.median(tick):.1f} ms (max {max(tick):.1f}), lag {lag:.1f} ms"
        )
        for metric, (number, scale) in COMPARED.items():
            difference = ours[metric] - theirs[number]
            print(f"    {metric:22} ours {ours[metric]:9.2f} ", end="")
            print(f"nvidia-smi {theirs[number]:9.2f} difference {difference:+.2f}")
            # PCIe in MiB/s: within 2 %, or what an idle bus chatters
            allowed = 2.0 if scale == 100 else max(0.02 * theirs[number], 20.0)
            if abs(difference) > allowed:
                wrong.append((name, metric, ours[metric], theirs[number]))
        assert rate > 9.5
        await _finish(kernel)
    collecting.cancel()
    socket.close()
    kernel.close()
    assert not wrong


async def _execute(kernel, code: str) -> None:
    header = {"msg_id": "m", "msg_type": "execute_request", "session": "s"}
    header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
    content = {"code": code, "silent": False, "store_history": False}
    content |= {"user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
    message = {"header": header, "parent_header": {}, "metadata": {}}
    await kernel.write_message(
        json.dumps({**message, "content": content, "channel": "shell", "buffers": []})
    )


async def _finish(kernel) -> None:
    """Wait for the cell's reply; a cell that failed fails the test."""
    while True:
        message = json.loads(await kernel.read_message())
        if message["msg_type"] == "execute_reply":
            assert message["content"]["status"] == "ok", message["content"]
            return
