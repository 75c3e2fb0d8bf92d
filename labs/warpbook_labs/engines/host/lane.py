"""A submission on host code, on a GPU; see `kernels/lane.py` for kernels."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.host.jobs import HostRequest
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import Request
from warpbook_labs.gpu.submission import graded
from warpbook_labs.lab.submission import Submission
from warpbook_labs.results.device import DeviceResult

#: three processes start PyTorch or CUDA, and a case may take long
_WALL_S = 240.0


def run_on_gpu(
    gpu: Gpu,
    submission: Submission,
    cases: Sequence[DrawnCase],
    is_timed: bool,
) -> DeviceResult:
    """Check a submission on a GPU, and time it if it is right and that is asked.

    Args:
        gpu: where it runs.
        submission: the learner's; bounds of its own hold there.
        cases: each with several calls.
        is_timed: whether its speed is graded.

    Raises:
        NotOnGpu: it can't be run there, for a reason that is no fault of the source.
    """
    request = HostRequest(
        str(submission.loaded.folder), submission.source, tuple(cases)
    )

    def run(request: Request) -> parent.Heard:
        return parent.run(
            request, gpu.uuid, _WALL_S, "warpbook_labs.engines.host.worker"
        )

    return graded(gpu, submission.loaded, request, is_timed, run)
