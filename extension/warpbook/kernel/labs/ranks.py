"""A function on several ranks of `torch.distributed`, from a notebook."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

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
