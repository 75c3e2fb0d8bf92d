"""What held the kernels themselves back, with what would change it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.facts.kernel_work import MEMORY, SMALL, UNKNOWN
from warpbook_profiler.model.figures import (
    WAITING,
    KernelWork,
    Metrics,
    Slowness,
    Topic,
)
from warpbook_profiler.verdict.advice import (
    computed_better,
    moved_better,
    nearer,
)
from warpbook_profiler.verdict.leading_cause import SHARE

FUSE = "Fuse them (torch.compile) or work on larger batches."
_MORE_BLOCKS = (
    "Split the work into more blocks, at least one for each multiprocessor, or run "
    "other kernels beside it on another stream."
)
#: drivers of some years ago left the maker out
OF_NVIDIA = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|TITAN")
_FAR: dict[Slowness, str] = {
    "short": "as each is so short that its start and end take much of its time",
    "few blocks": "as not every multiprocessor has a block",
    "last round": (
        "as few blocks are left for the last wave, when most of the GPU idles"
    ),
    "few warps": (
        "as registers or shared memory leave a multiprocessor too few warps to hide "
        "its waits"
    ),
    "untold": "and their launches do not show why",
    **{wait: f"as most of their warps {words}" for wait, words in WAITING.items()},
}


#: kind, technique, part of the window, explained, what could be gained (None: not
#: known), evidence, change
Cause = tuple[Kind, Topic | None, str, int, int | None, str, str]


def kernel_causes(metrics: Metrics, gpus: Sequence[GpuLimits]) -> Iterator[Cause]:
    """Give what limits the kernels, a cause each; far from its roof is one of its own.

    Args:
        metrics: of the window.
        gpus: what it ran on, as far as known.
    """
    of_nvidia = bool(gpus) and all(OF_NVIDIA.match(gpu.name) for gpu in gpus)
    has_fp8 = of_nvidia and all(gpu.has_fp8 for gpu in gpus)
    for work in metrics.kernel_work:
        share, rate = f"{SHARE} of the time", _rate(work)
        kind: Kind = "compute-bound"
        topic: Topic | None = None
        gain_ns: int | None = None
        # what was reached here is a better bound than what a datasheet promises
        reachable = work.of_ceiling if work.of_measured is None else work.of_measured
        if reachable is not None:
            gain_ns = round(work.time_ns * (1 - reachable))
        is_one = work.kernels == 1
        if work.bound == SMALL:
            kind, gain_ns = "launch-bound", work.time_ns
            kernels = f"{work.kernels:,} kernel{'' if is_one else 's'}"
            evidence = f"{kernels} too small to fill the GPU took {share}."
            change = FUSE.replace("them", "it") if is_one else FUSE
        elif work.multiprocessors and work.multiprocessors_used is not None:
            used = work.multiprocessors_used
            gain_ns = round(work.time_ns * (1 - used / work.multiprocessors))
            evidence = (
                f"{work.kernels:,} long kernel{'' if is_one else 's'} with "
                f"{work.bound} took {share}: at most {max(round(used), 1)} of "
                f"{work.multiprocessors} had work{'' if is_one else ', on average'}."
            )
            change = _MORE_BLOCKS
        elif work.bound == MEMORY:
            # how many bytes it needs is not known where samples alone tell
            by_samples = work.sampled == work.kernels
            kind, topic = "memory-bound", None if by_samples else "memory-traffic"
            evidence = f"Kernels limited by device memory took {share}{rate}."
            if why := "device memory" if by_samples else work.far:
                change = nearer(why, of_nvidia=of_nvidia)
            else:
                change = moved_better(work, metrics.kernel_work)
        elif work.bound in WAITING:
            gain_ns = None
            waiting = WAITING[work.bound]
            evidence = f"Kernels most of whose warps {waiting} took {share}{rate}."
            change = nearer(work.bound, of_nvidia=of_nvidia)
        elif work.bound != UNKNOWN:
            topic, change = computed_better(work.bound, has_fp8)
            if work.far:
                topic, change = None, nearer(work.far, of_nvidia=of_nvidia)
            evidence = f"Kernels that compute on the {work.bound} took {share}{rate}."
        else:
            continue
        yield kind, topic, work.part, work.time_ns, gain_ns, evidence, change


def _rate(work: KernelWork) -> str:
    """Say how near kernels come to their roof, and what keeps them from it."""
    parts, rate = [], ""
    if work.of_ceiling is not None:
        parts.append(f"{units.share(work.of_ceiling)} of the datasheet's ceiling")
    if work.of_measured is not None:
        reached = units.share(work.of_measured)
        parts.append(f"{reached} of what this GPU was measured to reach")
    if parts:
        rate = f", at {', '.join(parts)}"
    if work.far:
        rate += f": far from it, {_FAR[work.far]}"
    if work.sampled:
        of = "" if work.sampled == work.kernels else f"of {work.sampled:,} "
        rate += f", {of}by samples of their warps"
    return rate
