"""A submission on host code, on a GPU; see `kernels/lane.py` for kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import Request
from warpbook_labs.gpu.submission import graded
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.results.device import DeviceResult


class Bounds(Struct, frozen=True):
    """What a learner's process may take; the defaults are generous."""

    #: PyTorch and CUDA start in it
    start_s: float = 60.0
    #: `prepare`, which may warm up and tune
    prepare_s: float = 20.0
    #: all calls of one case, or of one timed unit
    run_s: float = 10.0
    #: of the host's memory, beside what it shares
    memory_bytes: int = 16 << 30
    #: in the folder of its own
    files: int = 64
    threads: int = 512


class HostRequest(Request, frozen=True):
    """Check a submission on host code, of which nothing is compiled, and time it."""

    #: False: PyTorch's device is the CPU, to try the lane without a GPU
    has_gpu: bool = True
    #: buffers go through the host's memory, as where CUDA shares none
    is_staged: bool = False
    bounds: Bounds = Bounds()
    #: the learner's process will be asked for a trace
    is_traced: bool = False
    #: wait for `GoOn` before the timed run
    is_held: bool = False
    least_pairs: int = 20
    most_pairs: int = 160


#: three processes start PyTorch or CUDA, and a case may take long
_WALL_S = 240.0
#: with fewer, what is bounded in time would wait for the check without a GPU
_CORES_FOR_BOTH = 4


def run_on_gpu(
    gpu: Gpu,
    submission: Submission,
    cases: Sequence[DrawnCase],
    is_timed: bool,
    until_checked: Callable[[], object] | None = None,
) -> DeviceResult:
    """Check a submission on a GPU, and time it if it is right and that is asked.

    Args:
        submission: the learner's; bounds of its own hold there.
        until_checked: returns when nothing else of this grading needs the CPU, whose
            time is graded, too; if left out, nothing does.

    Raises:
        NotOnGpu: it can't be run there, for a reason that is no fault of the source.
    """
    request = HostRequest(
        str(submission.loaded.folder),
        submission.source,
        tuple(cases),
        is_held=until_checked is not None,
    )
    if until_checked is not None and len(os.sched_getaffinity(0)) < _CORES_FOR_BOTH:
        until_checked()

    def run(request: Request) -> parent.WorkerReport:
        module = "warpbook_labs.engines.host.worker"
        return parent.run(request, gpu.uuid, _WALL_S, module, until_checked)

    return graded(gpu, submission.loaded, request, is_timed, run)
