"""Record labelled workloads on real GPUs: how the shipped recording was made.

    PYTHONPATH=monitors:extension python tools/record_workloads.py OUT.jsonl.gz

Needs torch with CUDA. The first GPU of `CUDA_VISIBLE_DEVICES` runs the single-GPU
phases; with two or more, they also train and all-reduce together over NCCL. All GPUs of
the machine are recorded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from warpbook_monitors._version import __version__
from warpbook_monitors.frames import PROTOCOL_VERSION, Hello
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.recordings.recording import RecordingWriter
from warpbook_monitors.sampling.sampler import Sampler

PHASE_S = 4.0
PAUSE_S = 1.0


def main(path: Path) -> None:
    """Run the workloads in processes of their own and record beside them."""
    sampler = Sampler([NvmlSource()])
    sampler.open()
    for absence in sampler.absences:
        print(f"{absence.what}: {absence.message} {absence.remedy}")
    hello = Hello(
        PROTOCOL_VERSION, __version__, time.time() * 1000, 10.0, sampler.devices
    )
    count = torch.cuda.device_count()
    context = mp.get_context("spawn")
    labels = context.SimpleQueue()
    workers = mp.spawn(_work, (count, labels), count, join=False)
    print("ready:", labels.get())
    with RecordingWriter(path, hello) as writer, sampler.watch("record"):
        stop = sampler.listen(writer.write)
        while (label := labels.get()) != "end":
            print(label, flush=True)
            sampler.label = label
        stop()
    workers.join()
    sampler.close()


def _work(rank: int, count: int, labels: mp.SimpleQueue[str]) -> None:
    """Run every phase; rank 0 tells which one it is, the others wait their turn."""
    torch.cuda.set_device(rank)
    store = dist.TCPStore("127.0.0.1", 29511, count, rank == 0)
    if count > 1:
        dist.init_process_group("nccl", store=store, rank=rank, world_size=count)
    phases = _phases(rank, count)
    for prepare_only in (True, False):
        for name, shared, body in phases:
            if count > 1:
                dist.barrier()
            if not prepare_only and rank == 0:
                labels.put(name)
            if shared or rank == 0:
                end_s = time.monotonic() + (0 if prepare_only else PHASE_S)
                body()
                while not _agreed(time.monotonic() > end_s, shared and count > 1):
                    body()
            torch.cuda.synchronize()
            if not prepare_only:
                if rank == 0:
                    labels.put("pause between two kinds of work")
                time.sleep(PAUSE_S)
        if prepare_only and rank == 0:
            time.sleep(2)
            labels.put("warm")
    if rank == 0:
        labels.put("end")
    if count > 1:
        dist.destroy_process_group()


def _agreed(done: bool, together: bool) -> bool:
    """Whether to stop; processes that work together must stop at the same step."""
    if not together:
        return done
    flag = torch.tensor([float(done)], device="cuda")
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag.item())


def _phases(rank: int, count: int) -> list[tuple[str, bool, Callable[[], None]]]:
    """Name, whether all GPUs take part, and a body of about a tenth of a second."""
    small = torch.zeros(64, device="cuda")
    half = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    full = torch.randn(8192, 8192, device="cuda")
    vector = torch.randn(1 << 27, device="cuda")
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    pageable = torch.ones(1 << 28, dtype=torch.uint8)
    on_gpu = torch.empty_like(host, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(500):
            small.add_(1)
    model = torch.nn.Sequential(
        *(torch.nn.TransformerEncoderLayer(1024, 16, batch_first=True),) * 4
    ).cuda()
    parallel = torch.nn.parallel.DistributedDataParallel(model) if count > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    batch = torch.randn(32, 512, 1024, device="cuda")
    gradients = torch.randn(1 << 28, device="cuda")

    def idle() -> None:
        time.sleep(0.1)

    def matmul(x: torch.Tensor) -> Callable[[], None]:
        def run() -> None:
            for _ in range(40 if x.dtype == torch.bfloat16 else 4):
                x @ x
            torch.cuda.synchronize()

        return run

    def elementwise() -> None:
        for _ in range(60):
            vector.mul_(1.0001)
        torch.cuda.synchronize()

    def tiny_kernels() -> None:
        for _ in range(5000):
            small.add_(1)
        torch.cuda.synchronize()

    def replay_graph() -> None:
        for _ in range(40):
            graph.replay()
        torch.cuda.synchronize()

    def copy_in() -> None:
        for _ in range(10):
            on_gpu.copy_(host, non_blocking=True)
        torch.cuda.synchronize()

    def copy_in_pageable() -> None:
        on_gpu.copy_(pageable)

    def train() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = parallel(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    def all_reduce() -> None:
        for _ in range(4):
            dist.all_reduce(gradients)

    phases: list[tuple[str, bool, Callable[[], None]]] = [
        ("idle", True, idle),
        ("bf16 matmul", False, matmul(half)),
        ("fp32 matmul", False, matmul(full)),
        ("elementwise", False, elementwise),
        ("tiny kernels in a loop", False, tiny_kernels),
        ("the same as a CUDA graph", False, replay_graph),
        ("pinned host-to-device copy", False, copy_in),
        ("pageable host-to-device copy", False, copy_in_pageable),
        ("training, bf16", True, train),
    ]
    if count > 1:
        phases.append(("all-reduce", True, all_reduce))
    return [*phases, ("idle again", True, idle)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
