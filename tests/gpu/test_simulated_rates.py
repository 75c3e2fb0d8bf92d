"""The simulated machine beside the real one: its rates, and how it ranks programs.

pytest -m gpu -s tests/gpu/test_simulated_rates.py prints a table for the evidence; what
`judging/rates.py` says is assumed can be taken from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch

from tests.labs.simulated.judging.writing import Writer, rows
from warpbook_labs.engines.simulated.judging.calls import rates
from warpbook_labs.engines.simulated.program import Place

pytestmark = pytest.mark.gpu

MIB = 1 << 20
#: floats of 32 MiB
N = 8 * MIB


def fastest_s(work: Callable[[], object], rounds: int = 10) -> float:
    """Time work until the GPU is idle again."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


def asking_ns(work: Callable[[], object], count: int = 300) -> float:
    """Time what the host takes to ask for something, while the GPU is kept busy.

    A GPU's queue takes about a thousand things before the host has to wait.
    """
    times = []
    for _ in range(5):
        torch.cuda._sleep(200_000_000)
        began = time.perf_counter()
        for _ in range(count):
            work()
        times.append((time.perf_counter() - began) / count)
        torch.cuda.synchronize()
    return min(times) * 1e9


def real_figures() -> dict[str, float]:
    """Measure what rates.py has, in its units."""
    there = torch.empty(N, device="cuda")
    # beside so much, what it takes to ask and to wait is little
    large, other = (
        torch.empty(16 * N, device="cuda"),
        torch.empty(16 * N, device="cuda"),
    )
    small = torch.zeros(64, device="cuda")
    pinned, pageable = torch.zeros(N, pin_memory=True), torch.zeros(N)
    host, few = torch.zeros(N), torch.zeros(64, pin_memory=True)
    event, stream = torch.cuda.Event(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    nodes = 500
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            small.add_(1)

    def asynchronously(source: torch.Tensor) -> None:
        there.copy_(source, non_blocking=True)

    size_bytes = 4.0 * N
    replay_s = fastest_s(graph.replay)
    return {
        "PINNED_BYTES_PER_S": size_bytes / fastest_s(lambda: asynchronously(pinned)),
        "PAGEABLE_BYTES_PER_S": size_bytes
        / fastest_s(lambda: asynchronously(pageable)),
        "DEVICE_BYTES_PER_S": 32 * size_bytes / fastest_s(lambda: other.copy_(large)),
        "KERNEL_NS and GRAPH_GAP_NS": replay_s / nodes * 1e9,
        "LAUNCH_NS": asking_ns(lambda: small.add(1)),
        "COPY_CALL_NS": asking_ns(lambda: small.copy_(few, non_blocking=True)),
        "GRAPH_LAUNCH_NS": asking_ns(graph.replay, 10),
        "EVENT_NS": asking_ns(event.record),
        "EVENT_NS (wait)": asking_ns(lambda: stream.wait_event(event)),
        "SYNCHRONIZE_NS": fastest_s(torch.cuda.synchronize) * 1e9,
        "HOST_BYTES_PER_S": 2 * size_bytes / fastest_s(lambda: host.copy_(pageable)),
    }


def test_rates_are_of_the_size_that_a_gpu_has() -> None:
    figures = real_figures()
    print(f"\n| {torch.cuda.get_device_name()} | measured | simulated |\n|---|---|---|")
    for name, figure in figures.items():
        simulated = getattr(rates, name.partition(" ")[0])
        print(f"| `{name}` | {figure:,.0f} | {simulated:,.0f} |")
    assert figures["PAGEABLE_BYTES_PER_S"] < figures["PINNED_BYTES_PER_S"]
    assert figures["PINNED_BYTES_PER_S"] < figures["DEVICE_BYTES_PER_S"]
    assert figures["KERNEL_NS and GRAPH_GAP_NS"] < figures["LAUNCH_NS"]
    assert figures["EVENT_NS"] < figures["LAUNCH_NS"]
    if "H200" in torch.cuda.get_device_name():
        for name in ("PINNED_BYTES_PER_S", "DEVICE_BYTES_PER_S", "LAUNCH_NS"):
            assert 0.5 < figures[name] / getattr(rates, name) < 2, name


#: chunks, streams, and whether the host's memory is page-locked
PIPELINES = {
    "at once": (1, 1, True),
    "chunks on one stream": (16, 1, True),
    "chunks on three streams": (16, 3, True),
    "chunks of pageable memory": (16, 3, False),
}


def real_s(chunks: int, streams: int, is_pinned: bool) -> float:
    queues = [torch.cuda.Stream() for _ in range(streams)]
    x, out = (torch.zeros(N, pin_memory=is_pinned) for _ in range(2))
    there, result = (torch.empty(N, device="cuda") for _ in range(2))

    def run() -> None:
        for chunk in range(chunks):
            part = slice(chunk * N // chunks, (chunk + 1) * N // chunks)
            with torch.cuda.stream(queues[chunk % streams]):
                there[part].copy_(x[part], non_blocking=True)
                torch.add(there[part], there[part], out=result[part])
                out[part].copy_(result[part], non_blocking=True)

    return fastest_s(run)


def simulated_s(chunks: int, streams: int, is_pinned: bool) -> float:
    place: Place = "pinned" if is_pinned else "pageable"
    w = Writer(x=(N, place, "in"), out=(N, place, "out"))
    there, result = w.new(N), w.new(N)
    w.call()
    for chunk in range(chunks):
        part = (chunk * N // chunks, (chunk + 1) * N // chunks)
        stream = 1 + chunk % streams
        w.copy(rows(w.views["x"], *part), rows(there, *part), stream)
        twice = [rows(there, *part)] * 2
        w.launch("add", twice, [rows(result, *part)], stream)
        w.copy(rows(result, *part), rows(w.views["out"], *part), stream)
    judged = w.judged({"x": np.zeros(N, np.float32)})
    assert judged.findings == ()
    return judged.counts[0].total_ns / 1e9


def test_pipelines_are_ranked_as_the_gpu_ranks_them() -> None:
    real = {name: real_s(*how) for name, how in PIPELINES.items()}
    simulated = {name: simulated_s(*how) for name, how in PIPELINES.items()}
    print("\n| pipeline | real ms | simulated ms |\n|---|---|---|")
    for name in PIPELINES:
        print(f"| {name} | {real[name] * 1e3:.2f} | {simulated[name] * 1e3:.2f} |")
    best = "chunks on three streams"
    for times in (real, simulated):
        assert times[best] < 0.8 * times["chunks on one stream"]
        assert times["chunks of pageable memory"] > 1.2 * times[best]
    gain = real["at once"] / real[best]
    simulated_gain = simulated["at once"] / simulated[best]
    assert simulated_gain == pytest.approx(gain, rel=0.3)
