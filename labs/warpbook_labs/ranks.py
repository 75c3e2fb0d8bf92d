"""A function on several ranks of `torch.distributed`, from a lab's notebook."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import multiprocessing

from warpbook_monitors.frames import Device
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.facts import read_facts
from warpbook_monitors.verdicts.link_speeds import nvlink_bytes_per_s, pcie_bytes_per_s

#: a rank that waits longer than this for another one raises
_PATIENCE = timedelta(seconds=120)
_RENDEZVOUS, _RESULT = "rendezvous", "result.json"


def run_on_ranks(work: Callable[..., Any], ranks: int, *arguments: Any) -> Any:
    """Call `work(rank, device, *arguments)` in one process for each rank.

    The group is NCCL's if there is a GPU for each rank, and else gloo's on the CPU.
    Processes are spawned, so `work` is a function of a module, and what it is given
    can be pickled.

    Returns:
        What rank 0 returned, which must be data that JSON knows.

    Raises:
        torch.multiprocessing.ProcessException: a rank raised or ended; the message
            has its traceback. The other ranks are ended.
    """
    with tempfile.TemporaryDirectory(prefix="warpbook-ranks-") as folder:
        multiprocessing.spawn(
            _rank, args=(work, ranks, folder, arguments), nprocs=ranks
        )
        return json.loads(Path(folder, _RESULT).read_text(encoding="utf-8"))


def _rank(
    rank: int,
    work: Callable[..., Any],
    ranks: int,
    folder: str,
    arguments: Sequence[Any],
) -> None:
    on_gpus = torch.cuda.device_count() >= ranks
    device = torch.device("cuda", rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
    dist.init_process_group(
        "nccl" if on_gpus else "gloo",
        init_method=f"file://{folder}/{_RENDEZVOUS}",
        rank=rank,
        world_size=ranks,
        timeout=_PATIENCE,
        device_id=device if on_gpus else None,
    )
    try:
        result = work(rank, device, *arguments)
        # who leaves early takes its connections along
        dist.barrier()
    finally:
        dist.destroy_process_group()
    if rank == 0:
        Path(folder, _RESULT).write_text(json.dumps(result), encoding="utf-8")


class Request(Protocol):
    """What a coroutine yields: one exchange with other ranks."""

    #: "all_reduce", "all_gather", "reduce_scatter", "send" or "receive"
    kind: str
    #: what is given to it; of "receive" a tensor of the shape and dtype that comes
    x: torch.Tensor
    #: of "send" and "receive"
    peer: int | None


def run_awaiting(
    work: Coroutine[Request, Any, Any],
    note: Callable[[Request, list[torch.Size]], None],
) -> Any:
    """Run a coroutine on this rank of a group, and give what it returns.

    Args:
        work: yields requests, and is sent a new tensor for each; None for "send".
        note: is called with each request that was done, and the shapes that all ranks
            gave.
    """
    answer = None
    while True:
        try:
            request = work.send(answer)
        except StopIteration as end:
            return end.value
        answer, shapes = _done(request)
        note(request, shapes)


def _done(request: Request) -> tuple[torch.Tensor | None, list[torch.Size]]:
    # what was given stays as it was
    x = request.x.clone(memory_format=torch.contiguous_format)
    ranks = dist.get_world_size()
    shapes = [x.shape] * ranks
    if request.kind == "all_reduce":
        dist.all_reduce(x)
    elif request.kind == "send":
        dist.send(x, request.peer)
        return None, shapes
    elif request.kind == "receive":
        dist.recv(x, request.peer)
    elif request.kind == "all_gather":
        return _gathered(x)
    else:
        pieces = x.tensor_split(ranks)
        # both backends take as many rows of each rank
        padded = [_padded(piece, pieces[0].shape[0]) for piece in pieces]
        own = torch.empty_like(padded[0])
        dist.reduce_scatter(own, padded)
        x = own[: pieces[dist.get_rank()].shape[0]]
    return x, shapes


def _gathered(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Size]]:
    own = torch.tensor([x.shape[0]], device=x.device)
    counts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(counts, own)
    shapes = [torch.Size((int(count), *x.shape[1:])) for count in counts]
    most = max(shape[0] for shape in shapes)
    padded = [x.new_empty(most, *x.shape[1:]) for _ in shapes]
    dist.all_gather(padded, _padded(x, most))
    parts = [part[: shape[0]] for part, shape in zip(padded, shapes, strict=True)]
    return torch.cat(parts), shapes


def _padded(x: torch.Tensor, rows: int) -> torch.Tensor:
    return torch.cat([x, x.new_zeros(rows - x.shape[0], *x.shape[1:])])


def gpu_link(uuids: Sequence[str]) -> dict[str, str | float | None]:
    """Read from NVML what joins GPUs.

    Args:
        uuids: of the GPUs, such as "GPU-8a...".

    Returns:
        `kind`, "NVLink" if links of all of them are up, else "PCIe"; `bytes_per_s`
        one way of the slowest, None where the driver does not tell it.

    Raises:
        NvmlError: NVML can't be used here, or knows no such GPU.
        DeviceLost: a GPU is gone.
    """
    devices = [_device(uuid) for uuid in uuids]
    on_nvlink = all(device.facts.get("nvlink_count") for device in devices)
    most = nvlink_bytes_per_s if on_nvlink else pcie_bytes_per_s
    known = [speed for speed in map(most, devices) if speed is not None]
    return {
        "kind": "NVLink" if on_nvlink else "PCIe",
        "bytes_per_s": min(known) if len(known) == len(devices) else None,
    }


def _device(uuid: str) -> Device:
    handle = nvml.call("nvmlDeviceGetHandleByUUID", uuid.encode())
    name = nvml.call("nvmlDeviceGetName", handle)
    return Device(f"gpu:{uuid}", "gpu", name, None, "live", (), read_facts(handle))
