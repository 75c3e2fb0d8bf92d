"""A submission's trace, by the lane that its language runs in."""

from __future__ import annotations

from pathlib import Path

from warpbook_labs.device import tracing as kernels
from warpbook_labs.device.gpu import Gpu
from warpbook_labs.device.tracing import NoTrace
from warpbook_labs.loader import LoadedLab
from warpbook_labs.referee import tracing as host

__all__ = ["NoTrace", "trace_submission"]


def trace_submission(
    gpu: Gpu, loaded: LoadedLab, source: str, trace: Path, telemetry: Path
) -> None:
    """Record what a source does on the GPU that grades.

    Args:
        gpu: where it runs.
        loaded: the lab.
        source: the learner's, which was found to be right.
        trace: is written, a Chrome trace in gzip.
        telemetry: is written, a recording; the file must not be there yet.

    Raises:
        NoTrace: it could not be recorded.
        NoCompiler: NVRTC is not installed.
    """
    lane = host if loaded.lab.language == "host" else kernels
    lane.trace_submission(gpu, loaded, source, trace, telemetry)
