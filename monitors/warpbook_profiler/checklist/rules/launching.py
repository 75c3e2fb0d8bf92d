"""How work comes to the GPU: launches, batches, fused kernels and waits."""

from __future__ import annotations

import re

from warpbook_monitors import units
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, counted, percent
from warpbook_profiler.techniques.launches import DYNAMIC, READS

_GRAPH_LAUNCH = re.compile(r"(cuda|cu|hip)GraphLaunch")
#: of the time, from which the GPU is said to be kept busy
_BUSY = 0.9
#: fewer launches are no work for a graph
_LEAST_LAUNCHES = 50
#: so many kernels come from one launch in a graph alone
_PER_LAUNCH = 2
#: of the time, below which launching is no cause
_LEAST_LAUNCHING = 0.05
#: of the kernels' time, or of the run's, from which a cause counts
_LEAST_SHARE = 0.25
_SMALL = ("too small", "too few blocks")
_FUSED = re.compile(
    r"triton_|flash_?(attn_)?_?(fwd|bwd|fprop|bprop)|fmha|sdpa",
    re.I,
)
_POINTWISE = re.compile(r"elementwise_kernel|triton_(poi|red|per)_")
_FUSIONS = ("sdpa", "sdpa-backend", "fuse", "cupy-fuse", "jax-jit", "whole-lstm")
_COPIES = ("aten::to", "aten::copy_", "aten::cpu", "aten::_to_copy")
_WAITS = (
    "read-once",
    "stack-results",
    "stay-on-gpu",
    "print-once",
    "keep-mask",
    "one-stream",
)
#: of the kernels' time, below which there is nothing to fuse
_LEAST_SHARE_TO_FUSE = 0.05
#: of the time, below which waits cost nothing to speak of
_LEAST_WAITING = 0.05


def cuda_graphs(facts: Facts) -> Judgement:
    """Tell whether short kernels are launched together."""
    launches = facts.metrics.launches
    kernels = facts.metrics.kernels
    named = any(_GRAPH_LAUNCH.match(name) for name in facts.profile.names)
    # the lanes of a long window leave short calls out
    if named or kernels > _PER_LAUNCH * launches:
        return Judgement(
            "yes",
            f"CUDA graphs are launched: {counted(kernels, 'kernel')} from "
            f"{counted(launches, 'call')}.",
        )
    advised = facts.by_change("cuda-graph")
    if advised is not None:
        return advised
    idle = f"The GPU is busy for {percent(facts.bare_busy_share)} of the time"
    if facts.bare_busy_share >= _BUSY:
        return Judgement("not applicable", f"{idle}: launching does not hold it back.")
    if launches < _LEAST_LAUNCHES:
        few = counted(launches, "launch", "launches")
        return Judgement("not applicable", f"{idle}, with no more than {few}.")
    if facts.changes("fused-optimizer", "jax-jit"):
        return Judgement(
            "not applicable",
            f"{idle}, and most launches are those of another change in this list.",
        )
    launching = facts.cause_share("launch-bound")
    if launching < _LEAST_LAUNCHING:
        return Judgement(
            "not applicable",
            f"{idle}, but launching explains only {percent(launching)} of it.",
        )
    dynamic = [name for name in DYNAMIC if name in facts.host_names]
    if dynamic:
        return Judgement(
            "not applicable",
            f"{idle}, but a graph can't hold {dynamic[0]}: only the GPU knows how "
            "large its result is.",
        )
    if facts.metrics.communication_ns:
        return Judgement(
            "unknown",
            f"{idle}. A graph around communication between GPUs is not predicted.",
            'Try torch.compile(mode="reduce-overhead") on what lies in between.',
        )
    return facts.without_gain(f"{idle}, with {launches:,} launches.")


def batch_size(facts: Facts) -> Judgement:
    """Tell whether the batch is large enough to fill the GPU."""
    if not facts.has_layers:
        if not facts.host_names:
            return Judgement(
                "unknown",
                "No operators are in the trace, so that batches can't be told.",
                "Record with ProfilerActivity.CPU, too.",
            )
        return Judgement("not applicable", "No layer of a model is in this window.")
    kernel_time_ns = max(facts.metrics.kernel_time_ns, 1)
    small = [row for row in facts.metrics.kernel_work if row.bound.startswith(_SMALL)]
    small_share = sum(row.time_ns for row in small) / kernel_time_ns
    launching = facts.cause_share("launch-bound")
    evidence = (
        f"{percent(small_share)} of the kernels' time is in kernels too small to fill "
        f"the GPU, and launching them one by one explains {percent(launching)} of the "
        "time."
    )
    if small_share >= _LEAST_SHARE or launching >= _LEAST_SHARE:
        return Judgement(
            "no",
            evidence,
            "Try a larger batch, as far as memory and the training allow: a launch "
            "then does more work. What it gives is not known before it is tried.",
        )
    if facts.profile.bare is None and not facts.profile.findings:
        return Judgement(
            "unknown",
            "What the time goes to is not known.",
            "Record it with torch.profiler, or profile the cell by %%gpuprof.",
        )
    return Judgement(
        "yes",
        f"{percent(1 - small_share)} of the kernels' time is in kernels that are large "
        "enough to fill the GPU.",
    )


def fusion(facts: Facts) -> Judgement:
    """Tell whether chains of small operations are one kernel each."""
    advised = facts.by_change(*_FUSIONS)
    if advised is not None:
        return advised
    rows = facts.profile.kernels
    fused = sum(row.share_ratio for row in rows if _FUSED.search(row.name))
    pointwise = sum(row.share_ratio for row in rows if _POINTWISE.search(row.name))
    if fused and pointwise < _LEAST_SHARE_TO_FUSE:
        return Judgement(
            "yes",
            f"{percent(fused)} of the kernels' time is in fused kernels, and "
            f"{percent(pointwise)} in pointwise ones that are not.",
        )
    evidence = f"Pointwise kernels take {percent(pointwise)} of the kernels' time."
    if pointwise < _LEAST_SHARE_TO_FUSE:
        return Judgement("not applicable", evidence)
    if not facts.host_names:
        return Judgement(
            "unknown",
            f"{evidence} Which operators they are of is not known.",
            "Record with ProfilerActivity.CPU, too.",
        )
    if facts.cause_share("launch-bound") >= _LEAST_SHARE:
        return Judgement(
            "not applicable",
            f"{evidence} What holds them back is that they are launched one by one.",
        )
    return facts.without_gain(evidence)


def host_waits(facts: Facts) -> Judgement:
    """Tell whether the host runs ahead of the GPU."""
    advised = facts.by_change(*_WAITS)
    if advised is not None:
        return advised
    waits, waiting = facts.metrics.synchronizations, facts.cause_share("sync-bound")
    if not waits:
        return Judgement("yes", "The host never waits for the GPU.")
    evidence = (
        f"The host waits for the GPU {counted(waits, 'time')}, which explains "
        f"{percent(waiting)} of the time."
    )
    if waiting < _LEAST_WAITING:
        return Judgement("yes", evidence)
    longest = max(
        facts.metrics.sync_points, key=lambda point: point.stall_ns, default=None
    )
    if longest is None:
        return facts.without_gain(evidence)
    place = longest.operator or longest.name
    stall = units.duration_ns(longest.stall_ns)
    return Judgement(
        "no",
        f"{evidence} The longest stalls are at {place}: {stall}.",
        f"{_instead_of(place)} What it gives is not known before it is tried.",
    )


def _instead_of(place: str) -> str:
    """Say what to do about a place where the host waits."""
    if place in READS:
        return "Read results after the loop, or every so many steps."
    if place in (*DYNAMIC, "aten::index"):
        return (
            "It waits to learn how large its result is: compute with all elements, as "
            "torch.where does."
        )
    if place in _COPIES:
        return "Copy more at once, and with pinned memory and non_blocking=True."
    return "See what waits there, and whether it must each time."
