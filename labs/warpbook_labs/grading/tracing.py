"""A submission's trace, beside a recording of the GPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from warpbook_labs.errors import NoGpu, NoTrace
from warpbook_labs.gpu.gpu import Gpu, find_gpu
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.loaded import Submission


class Recorded(NamedTuple):
    """What was recorded of a submission, and on which GPU."""

    #: a Chrome trace, in gzip
    trace: Path
    #: a recording of what the GPU did
    telemetry: Path
    gpu: Gpu


def record(submission: Submission, folder: Path) -> Recorded:
    """Run a source once more, untimed, and record it into two files of the folder.

    Raises:
        NoTrace: there is no GPU, or it could not be recorded; the message says why.
        NotInstalled: NVRTC is not installed.
    """
    lab = submission.loaded.lab
    name = f"{lab.id}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        gpu = find_gpu()
    except NoGpu as problem:
        raise NoTrace(f"Nothing can be traced here: {problem}") from None
    trace = folder / f"{name}.trace.json.gz"
    telemetry = folder / f"{name}.telemetry.jsonl.gz"
    grader_of(lab).record_trace(gpu, submission, trace, telemetry)
    return Recorded(trace, telemetry, gpu)
