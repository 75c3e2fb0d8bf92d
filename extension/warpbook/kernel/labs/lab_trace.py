"""The trace of a submission, as the report that any profiled cell has."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.link.timeline_handover import hand_in, timelines
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.runs.cell import prompt_number
from warpbook.kernel.runs.profile import Notice, Profile
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_labs.errors import NoTrace
from warpbook_labs.grading.tracing import record
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.verdict.analysis import analyse


def traced(loaded: LoadedLab, source: str, folder: Path) -> Profile | Notice:
    """Run a source once more, untimed, and give the report of that."""
    began_ms = time.time() * 1e3
    try:
        trace, telemetry, gpu = record(Submission(loaded, source), folder)
        return report_of(
            trace,
            f"Lab {loaded.lab.id}",
            (began_ms, time.time() * 1e3),
            (gpu.uuid,),
            (
                f"The trace is {trace.name}: `warpbook analyze` reads it, too. "
                f"`warpbook up --replay {telemetry.name}` plays what the GPU did.",
            ),
        )
    except (NoTrace, TraceError) as problem:
        return Notice(str(problem))


def report_of(
    trace: Path,
    title: str,
    window_ms: tuple[float, float],
    gpus: tuple[str, ...],
    notes: tuple[str, ...],
) -> Profile:
    """Read a trace file; the dashboard and the page get its report and its events.

    Raises:
        TraceError: the file can't be read.
    """
    events, run = read_chrome_trace(str(trace))
    profile = Profile(analyse(events, run), title, window_ms, gpus)
    profile.notes = notes
    shell: Any = get_ipython()
    if shell is None:
        return profile
    profile.report_id = str(uuid.uuid4())
    count = timelines.count(events, run)
    report = CellReport(
        id=profile.report_id,
        protocol=PROTOCOL_VERSION,
        kernel_id=kernel_id(shell),
        notebook=notebook_path(),
        cell_id=None,
        execution_count=prompt_number(shell),
        title=title,
        started_ms=window_ms[0],
        ended_ms=window_ms[1],
        status="ok",
        profile=profile.figures,
        gpus=gpus,
        notes=notes,
        timeline_events=count,
    )
    _, words = hand_in(ServerLink(), report, events, run)
    if words:
        profile.notes = (*notes, words)
    return profile
