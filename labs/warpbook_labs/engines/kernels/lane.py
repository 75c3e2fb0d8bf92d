"""A submission on the GPU, from its source to a result, without using the GPU here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.compiler.programs import image_of, job_of
from warpbook_labs.errors import NotOnGpu, SourceProblem
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import Request
from warpbook_labs.gpu.submission import graded
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.results.stage_times import stage
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Limits, Refused


class KernelRequest(Request, frozen=True, kw_only=True):
    """Check kernels, and time them."""

    #: what the source was compiled to; of Triton, PTX that the driver makes a cubin of;
    #: nothing while it is being compiled
    image: bytes
    #: after it was timed, tell where its warps wait
    is_sampled: bool = True


def run_on_gpu(
    gpu: Gpu,
    submission: Submission,
    cases: Sequence[DrawnCase],
    is_timed: bool,
) -> DeviceResult:
    """Check a submission on a GPU, and time it if it is right and that is asked.

    Raises:
        NotOnGpu: it can't be run there, for a reason that is no fault of the source.
        NotInstalled: NVRTC is not installed.
    """
    loaded = submission.loaded
    sizes = [case.sizes for case in cases]
    if loaded.lab.speed is not None:
        sizes.append(dict(loaded.lab.speed.sizes))
    try:
        job = job_of(submission, gpu.architecture, sizes)
    except SourceProblem as problem:
        raise NotOnGpu(str(problem)) from None
    request = KernelRequest(
        str(loaded.folder), submission.source, tuple(cases), is_timed, image=b""
    )
    # it gets ready for the GPU, and makes the cases ready, while this is compiled
    with parent.started(gpu.uuid, request) as do:
        with stage("compile"):
            built = warm.run(job, submission.limits or Limits())
        if not isinstance(built.result, Compiled):
            words = built.message
            if isinstance(built.result, Refused):
                words = built.result.message.strip().splitlines()[0]
            raise NotOnGpu(f"It could not be compiled for {gpu.architecture}: {words}")
        request = msgspec.structs.replace(
            request, is_timed=False, image=image_of(built.result)
        )
        ready = [do]

        def run(request: Request) -> parent.WorkerReport:
            if ready:
                return ready.pop()(request, parent.WALL_S)
            return parent.run(request, gpu.uuid)

        return graded(gpu, loaded, request, is_timed, run)
