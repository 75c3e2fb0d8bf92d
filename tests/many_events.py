"""A simulated run with as many events as asked for, handed in as a kernel does it."""

from __future__ import annotations

import os
import time
import uuid

import numpy as np

from warpbook.kernel.link.server_link import ServerLink
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_profiler.events.columns import (
    Category,
    Columns,
    KernelShape,
    Operands,
    make_columns,
)
from warpbook_profiler.events.run import Run
from warpbook_profiler.timeline.timeline_body import pack
from warpbook_profiler.verdict.analysis import analyse

BEGIN_NS = 1_790_857_026_000_000_000
KERNELS = 40
#: the only event of its name
RARE = "the_one_kernel_that_is_searched_for"
#: an operator, an operator within it, a launch and its kernel
EVENTS_PER_STEP = 4


def simulated(
    events: int, seed: int = 1, run_begins_ns: int = BEGIN_NS
) -> tuple[Columns, Run]:
    """A host that launches kernels on two streams as fast as it can."""
    steps = events // EVENTS_PER_STEP
    choose = np.random.default_rng(seed)
    took_ns = choose.integers(2_000, 6_000, steps)
    # now and then the host does something else
    pause_ns = np.where(np.arange(steps) % 5000 == 4999, 2_000_000, 300)
    begin_ns = np.cumsum(took_ns + pause_ns) - took_ns
    kernel_ns = choose.integers(500, 5_000, steps)
    stream = np.where(np.arange(steps) % 10 == 0, 20, 7)
    # a stream is busy until its kernel before is done
    start_ns = begin_ns + took_ns + 1_000
    kernel_ns = np.minimum(kernel_ns, np.append(np.diff(start_ns), 5_000) - 1)
    which = choose.integers(0, KERNELS, steps)
    which[steps // 3] = KERNELS
    names = (
        *(f"void kernel_{at}<float, {at}>(float*, int)" for at in range(KERNELS)),
        RARE,
        "aten::linear",
        "aten::addmm",
        "cudaLaunchKernel",
    )
    host, nothing = np.full(steps, 4242), np.full(steps, -1)
    number = np.arange(steps)

    def filled(value: int) -> np.ndarray:
        return np.full(steps, value)

    parts = [
        # category, name, start, duration, device, track, correlation
        (Category.OPERATOR, filled(KERNELS + 1), 0, took_ns, nothing, host, nothing),
        (
            Category.OPERATOR,
            filled(KERNELS + 2),
            200,
            took_ns - 400,
            nothing,
            host,
            nothing,
        ),
        (
            Category.API,
            filled(KERNELS + 3),
            600,
            took_ns - 1_000,
            nothing,
            host,
            number,
        ),
        (
            Category.KERNEL,
            which,
            start_ns - begin_ns,
            kernel_ns,
            0 * host,
            stream,
            number,
        ),
    ]
    joined = [
        np.concatenate(
            [np.broadcast_to(np.asarray(part[at], np.int64), steps) for part in parts]
        )
        for at in range(7)
    ]
    start = np.tile(begin_ns, len(parts)) + joined[2] + run_begins_ns
    is_kernel = joined[0] == Category.KERNEL
    is_linear = (joined[0] == Category.OPERATOR) & (joined[1] == KERNELS + 1)
    shapes = (KernelShape((16, 2, 1), (128, 1, 1), 32, 4096),)
    operands = (Operands(((64, 128), (128, 128)), ("c10::BFloat16",) * 2),)
    columns = make_columns(
        names=(names, joined[1].astype(np.int32)),
        categories=joined[0].astype(np.int8),
        start_ns=start,
        duration_ns=joined[3],
        device=joined[4],
        track=joined[5],
        correlation=joined[6],
        size_bytes=np.full(len(start), -1, np.int64),
        shapes=(shapes, np.where(is_kernel, 0, -1).astype(np.int32)),
        operands=(operands, np.where(is_linear, 0, -1).astype(np.int32)),
    )
    end_ns = int((start + joined[3]).max())
    run = Run(run_begins_ns, end_ns, end_ns, gpu_name="Simulated", cuda_used=True)
    return columns, run


def hand_in(events: int, title: str, whole: bool = True) -> str:
    """Hand a report and its events to the server of this kernel; give its id.

    Args:
        events: how many.
        title: of the cell.
        whole: else the report comes without its events.
    """
    # the newest report is the one that started last
    columns, run = simulated(events, run_begins_ns=time.time_ns())
    report = CellReport(
        id=str(uuid.uuid4()),
        protocol=PROTOCOL_VERSION,
        kernel_id=os.environ["WARPBOOK_INGEST_SECRET"].rpartition(".")[0],
        notebook=None,
        cell_id=None,
        execution_count=None,
        title=title,
        started_ms=run.start_ns / 1e6,
        ended_ms=run.end_ns / 1e6,
        status="ok",
        profile=analyse(columns, run),
        timeline_events=len(columns) if whole else None,
    )
    link = ServerLink()
    link.post(report)
    if whole:
        link.post_timeline(report.id, pack(columns, run))
    return report.id
