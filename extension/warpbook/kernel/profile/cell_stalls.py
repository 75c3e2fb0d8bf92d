"""`%%gpuprof --stalls`: the cell once more, with the warps of its kernels sampled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from IPython.utils.capture import capture_output

from warpbook.kernel.trying.copies import PROBLEMS, copies, raised
from warpbook.kernel.trying.refusals import Refused, StateLost
from warpbook.kernel.trying.source import Body, read_body
from warpbook_profiler.capture.inductor import kernel_places
from warpbook_profiler.capture.torch_gpus import wait_for_gpu
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.stalls import Stalls
from warpbook_profiler.stalls.attribution import demangled, stalls_of
from warpbook_profiler.stalls.cubins import loaded_cubins
from warpbook_profiler.stalls.cupti import NotSampled
from warpbook_profiler.stalls.line_table import SourceLine
from warpbook_profiler.stalls.sampler import Samples, period_for, sampling
from warpbook_profiler.stalls.sources import source_at, triton_ptx

#: on copies of the cell's state, or the cell itself a second time
Way = Literal["copies", "rerun"]
_NOTES: dict[Way, str] = {
    "copies": "The cell ran once more, sampled, on copies of its state; its kernels "
    "ran one after the other and took longer.",
    "rerun": "The cell itself ran a second time, sampled, so its side effects happened "
    "twice; its kernels ran one after the other and took longer.",
}
#: a launch takes about a millisecond longer while it is sampled
_MOST_LAUNCHES = 50_000
_REMEDY = "%%gpuprof --stalls rerun runs the cell itself a second time."


def cell_stalls(shell: Any, code: str, way: Way, profile: CellProfile) -> Stalls:
    """Return where the warps of a cell wait that has just run.

    Args:
        shell: in whose namespace it ran.
        code: its source.
        way: how it runs again.
        profile: what the report says of it.

    Raises:
        StateLost: what the person had could not be put back.
    """
    try:
        return _stalls(shell, code, way, profile)
    except KeyboardInterrupt:
        reason = "Not sampled: it was interrupted, and the sampler is off."
        return Stalls("failed", reason, profile.gpu_name or "")


def _stalls(shell: Any, code: str, way: Way, profile: CellProfile) -> Stalls:
    if not profile.kernels:
        return Stalls("nothing", "The cell ran no kernel on a GPU.")
    if torch.autograd._profiler_enabled():
        reason = "Another profiler records in this kernel: end it and run this again."
        return Stalls("held", reason)
    device = profile.gpu_name or ""
    if profile.metrics is not None and profile.metrics.communication_ns:
        reason = (
            "Not sampled: the cell communicates, and kernels that wait for one another "
            "would wait forever where each runs alone. Sample a cell without it."
        )
        return Stalls("refused", reason, device)
    launches = profile.completeness.launches
    if launches > _MOST_LAUNCHES:
        reason = (
            f"Not sampled: the cell launches {launches:,} kernels, and each takes "
            "about 1 ms longer while it is sampled. Take fewer steps, with "
            f"{_MOST_LAUNCHES:,} launches at most."
        )
        return Stalls("refused", reason, device)
    sampler = _Sampler(period_for([row.time_ns for row in profile.kernels]))
    try:
        samples = _sampled(shell, read_body(shell, code), way, profile, sampler)
    except StateLost:
        raise
    except (Refused, NotSampled) as problem:
        if sampler.problem is not None:
            return Stalls(sampler.problem.state, str(sampler.problem), device)
        remedy = f" {_REMEDY}" if way == "copies" else ""
        return Stalls("refused", f"Not sampled: {problem}{remedy}", device)
    except PROBLEMS as problem:
        reason = f"Not sampled: the cell {raised(problem)} when it ran again."
        return Stalls("failed", reason, device)
    cubins = loaded_cubins({crc for crc, _ in samples.kernels})
    origins = {
        kernel: [SourceLine(path, line) for path, line in sorted(places)]
        for kernel, places in kernel_places().items()
    }
    return stalls_of(
        samples, cubins, source_at, _NOTES[way], origins, triton_ptx, demangled
    )


class _Sampler:
    """Samples what runs meanwhile, to its end."""

    def __init__(self, period: int) -> None:
        self._period = period
        #: which the run on copies takes for one of the cell's
        self.problem: NotSampled | None = None

    @contextmanager
    def __call__(self) -> Iterator[Samples]:
        try:
            with sampling(self._period) as samples:
                yield samples
                wait_for_gpu()
        except NotSampled as problem:
            self.problem = problem
            raise


def _sampled(
    shell: Any, body: Body, way: Way, profile: CellProfile, sampler: _Sampler
) -> Samples:
    if way == "copies":
        with copies(shell.user_ns, (body,), profile) as held:
            _, samples, _ = held.first_run(body, sampler())
        return samples
    try:
        runnable = body.compiled()
    except SyntaxError:
        raise Refused("the cell awaits something, which needs IPython.") from None
    with capture_output(), sampler() as samples:
        runnable.run(shell.user_ns)
    return samples
