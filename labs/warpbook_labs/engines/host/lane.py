"""A submission on host code, on a GPU; see `device/lane.py` for kernels."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.host.jobs import AskedOfHost
from warpbook_labs.engines.kernels.lane import graded
from warpbook_labs.gpu import parent
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.jobs import Asked
from warpbook_labs.lab.loader import LoadedLab
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.sandbox.limits import Limits

#: three processes start PyTorch or CUDA, and a case may take long
_WALL_S = 240.0


def run_on_gpu(
    gpu: Gpu,
    loaded: LoadedLab,
    source: str,
    cases: Sequence[DrawnCase],
    is_timed: bool,
    limits: Limits,
) -> DeviceResult:
    """Check a submission on a GPU, and time it if it is right and that is asked.

    Args:
        gpu: where it runs.
        loaded: the lab.
        source: the learner's.
        cases: each with several calls.
        is_timed: whether its speed is graded.
        limits: not used: what the GPU's lane bounds is in `referee.jobs.Bounds`.

    Raises:
        NotOnGpu: it can't be run there, for a reason that is no fault of the source.
    """
    asked = AskedOfHost(str(loaded.folder), source, b"", tuple(cases))

    def run(asked: Asked) -> parent.Heard:
        return parent.run(asked, gpu.uuid, _WALL_S, "warpbook_labs.engines.host.worker")

    return graded(gpu, loaded, asked, is_timed, run)
