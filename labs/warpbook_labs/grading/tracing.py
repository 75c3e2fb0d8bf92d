"""A submission's trace, by the lane that its language runs in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from warpbook_labs.engines.host import tracing as host
from warpbook_labs.engines.kernels import tracing as kernels
from warpbook_labs.engines.kernels.tracing import NoTrace
from warpbook_labs.gpu.gpu import Gpu, NoGpu, find_gpu
from warpbook_labs.lab.loader import LoadedLab

__all__ = ["NoTrace", "Recorded", "record", "trace_submission"]


class Recorded(NamedTuple):
    """What was recorded of a submission, and on which GPU."""

    #: a Chrome trace, in gzip
    trace: Path
    #: a recording of what the GPU did
    telemetry: Path
    gpu: Gpu


def record(loaded: LoadedLab, source: str, folder: Path) -> Recorded:
    """Run a source once more, untimed, and record it into two files of the folder.

    Raises:
        NoTrace: there is no GPU, or it could not be recorded; the message says why.
        NoCompiler: NVRTC is not installed.
    """
    name = f"{loaded.lab.id}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        gpu = find_gpu()
    except NoGpu as problem:
        raise NoTrace(f"Nothing can be traced here: {problem}") from None
    trace = folder / f"{name}.trace.json.gz"
    telemetry = folder / f"{name}.telemetry.jsonl.gz"
    trace_submission(gpu, loaded, source, trace, telemetry)
    return Recorded(trace, telemetry, gpu)


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
