"""`warpbook labs trace`: what a source does on the GPU, recorded into two files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from warpbook.cli.errors import CommandError
from warpbook_labs.device.gpu import NoGpu, find_gpu
from warpbook_labs.loader import LoadedLab
from warpbook_labs.tracing import NoTrace, trace_submission


class Files(NamedTuple):
    """Where the trace and the telemetry are."""

    trace: Path
    telemetry: Path


def record(loaded: LoadedLab, source: str, folder: Path) -> Files:
    """Run a source once more, untimed, and record it.

    Raises:
        CommandError: there is no GPU, or no trace; the message says why.
        NoCompiler: NVRTC is not installed.
    """
    name = f"{loaded.lab.id}-{time.strftime('%Y%m%d-%H%M%S')}"
    files = Files(
        folder / f"{name}.trace.json.gz", folder / f"{name}.telemetry.jsonl.gz"
    )
    try:
        trace_submission(find_gpu(), loaded, source, *files)
    except NoGpu as problem:
        raise CommandError(f"Nothing can be traced here: {problem}") from None
    except NoTrace as problem:
        raise CommandError(str(problem)) from None
    return files
