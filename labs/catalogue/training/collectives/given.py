"""Your schedules on real ranks: NCCL's if there are GPUs for them, else gloo's.

Every message of a schedule is sent from one process to another. Nothing here is graded.
"""

import itertools
import runpy
import statistics
import time
from collections import defaultdict

import numpy as np
import torch
import torch.distributed as dist

from warpbook_labs.ranks import gpu_link, run_on_ranks

NAMES = ("ring", "tree", "halving_doubling")
#: 4 KiB to 64 MiB
SIZES_BYTES = tuple(4**power for power in range(6, 14))
#: ranks 0 and 1 exchange a buffer: what a step costs at least
EXCHANGE = [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0]]
ROUNDS, ROUND_BYTES, MOST_CALLS = 5, 1 << 24, 50


def own_steps(schedule, rank):
    """Give what a rank does in each step: by peer, chunks to send and to receive."""
    steps = []
    for _, rows in itertools.groupby(sorted(schedule), key=lambda row: row[0]):
        sent, received = defaultdict(list), defaultdict(list)
        for _, sender, receiver, chunk, adds in rows:
            if sender == rank:
                sent[receiver].append(chunk)
            if receiver == rank:
                received[sender].append((chunk, adds))
        if sent or received:
            steps.append((sent, received))
    return steps


def run_schedule(steps, chunks):
    """Do a rank's steps on its buffer, in place; `chunks` are views of it."""
    for sent, received in steps:
        # copies, as a chunk may be sent and received in the same step
        leaving = {
            peer: torch.cat([chunks[chunk] for chunk in numbers])
            for peer, numbers in sent.items()
        }
        arriving = {
            peer: chunks[0].new_empty(sum(chunks[chunk].numel() for chunk, _ in rows))
            for peer, rows in received.items()
        }
        messages = [dist.P2POp(dist.isend, data, to) for to, data in leaving.items()]
        messages += [dist.P2POp(dist.irecv, data, of) for of, data in arriving.items()]
        for request in dist.batch_isend_irecv(messages):
            request.wait()
        for peer, rows in received.items():
            parts = arriving[peer].split([chunks[chunk].numel() for chunk, _ in rows])
            for (chunk, adds), part in zip(rows, parts, strict=True):
                chunks[chunk].add_(part) if adds else chunks[chunk].copy_(part)


def chunks_of(schedule, buffer):
    """Cut a buffer into the chunks of a schedule."""
    count = 1 + max((row[3] for row in schedule), default=0)
    return torch.tensor_split(buffer, count)


def is_sum(schedule, rank, device):
    """Tell whether a schedule gives what `dist.all_reduce` does, on every rank."""
    # sums of small whole numbers are exact in any order
    numbers = torch.Generator().manual_seed(rank)
    buffer = torch.randint(-99, 99, (10_007,), generator=numbers).float().to(device)
    right = buffer.clone()
    dist.all_reduce(right)
    run_schedule(own_steps(schedule, rank), chunks_of(schedule, buffer))
    equal = torch.tensor([float(torch.equal(buffer, right))], device=device)
    dist.all_reduce(equal, dist.ReduceOp.MIN)
    return bool(equal.item())


def seconds_of(call, size_bytes, device):
    """Time a call that all ranks make: the slowest rank, the median of the rounds."""
    calls = max(1, min(MOST_CALLS, ROUND_BYTES // size_bytes))
    call()
    times_s = []
    for _ in range(ROUNDS):
        synchronize(device)
        dist.barrier()
        synchronize(device)
        begin_s = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize(device)
        times_s.append((time.perf_counter() - begin_s) / calls)
    slowest = torch.tensor(times_s, dtype=torch.float64, device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return statistics.median(slowest.tolist())


def synchronize(device):
    """Wait for a GPU; a CPU is done when a call returns."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def on_rank(rank, device, schedules, sizes_bytes):
    """Check and time schedules on one rank of a group; all sizes are in bytes."""
    right = [name for name, rows in schedules.items() if is_sum(rows, rank, device)]
    timed = {"exchange": EXCHANGE} | {name: schedules[name] for name in right}
    rows = []
    for size_bytes in sizes_bytes:
        buffer = torch.zeros(size_bytes // 4, device=device)
        row = {"size_bytes": size_bytes}
        for name, schedule in timed.items():
            steps, chunks = own_steps(schedule, rank), chunks_of(schedule, buffer)
            row[name] = seconds_of(
                lambda s=steps, c=chunks: run_schedule(s, c), size_bytes, device
            )
        row["all_reduce"] = seconds_of(
            lambda b=buffer: dist.all_reduce(b), size_bytes, device
        )
        rows.append(row)
    link = {"kind": "gloo on the CPU", "bytes_per_s": None}
    if device.type == "cuda":
        ranks = range(dist.get_world_size())
        uuids = [torch.cuda.get_device_properties(rank).uuid for rank in ranks]
        link = gpu_link([f"GPU-{uuid}" for uuid in uuids])
    return {"right": right, "rows": rows, "link": link}


def fit(sizes_bytes, times_s):
    """Fit time = alpha + beta * size by least squares of relative errors.

    Returns:
        alpha in seconds, beta in seconds for each byte.
    """
    sizes, times = np.array(sizes_bytes, float), np.array(times_s, float)
    columns = np.stack([1 / times, sizes / times], axis=1)
    alpha, beta = np.linalg.lstsq(columns, np.ones(len(times)), rcond=None)[0]
    return float(alpha), float(beta)


def measure(ranks=None, source="answers.py", sizes_bytes=SIZES_BYTES):
    """Run the schedules of a source on so many ranks; all GPUs, or two on the CPU.

    Returns:
        A dict: `ranks`; `link`; `right`, the schedules whose sums are right; `rows`,
        seconds by size; `alpha_s` and `beta_s_per_byte` of an exchange; `predicted`,
        what `seconds` of the source makes of these two, by size and schedule.
    """
    answers = runpy.run_path(source)
    ranks = ranks or max(2, torch.cuda.device_count())
    schedules = {name: answers[name](ranks) for name in NAMES}
    result = run_on_ranks(on_rank, ranks, schedules, tuple(sizes_bytes))
    rows = result["rows"]
    alpha_s, beta = fit(sizes_bytes, [row["exchange"] for row in rows])
    cluster = {
        "groups": [0] * ranks,
        "port_bytes_per_s": 1 / beta,
        "port_latency_s": alpha_s,
        # all ranks are one group, so no message goes over an uplink
        "uplink_bytes_per_s": 1 / beta,
        "uplink_latency_s": alpha_s,
    }
    predicted = [
        {
            name: answers["seconds"](cluster, row["size_bytes"], schedules[name])
            for name in result["right"]
        }
        for row in rows
    ]
    fitted = {"alpha_s": alpha_s, "beta_s_per_byte": beta, "predicted": predicted}
    return {"ranks": ranks, **result, **fitted}


def table(measured):
    """Write a measurement as text: µs, predicted µs behind them, GB/s of the bus."""
    names, ranks = measured["right"], measured["ranks"]
    beta = measured["beta_s_per_byte"]
    link, speed = measured["link"]["kind"], measured["link"]["bytes_per_s"]
    most = f", {speed / 1e9:.0f} GB/s one way" if speed else ""
    lines = [
        f"{ranks} ranks over {link}{most}",
        f"exchange: alpha {measured['alpha_s'] * 1e6:.1f} µs, "
        f"1 / beta {1 / beta / 1e9:.2f} GB/s",
        *(f"{name}: the sums are wrong" for name in NAMES if name not in names),
        "µs, in brackets as predicted; GB/s of the bus, 2 (p - 1) / p bytes / time",
    ]
    columns = [*names, "all_reduce"]
    lines.append(f"{'bytes':>10}" + "".join(f"{name:>36}" for name in columns))
    for row, predicted in zip(measured["rows"], measured["predicted"], strict=True):
        cells = []
        for name in columns:
            expected = f" ({predicted[name] * 1e6:.1f})" if name in predicted else ""
            bus = 2 * (ranks - 1) / ranks * row["size_bytes"] / row[name] / 1e9
            cells.append(f"{row[name] * 1e6:.1f}{expected} {bus:8.3f} GB/s")
        lines.append(
            f"{row['size_bytes']:>10}" + "".join(f"{cell:>36}" for cell in cells)
        )
    return "\n".join(lines)
