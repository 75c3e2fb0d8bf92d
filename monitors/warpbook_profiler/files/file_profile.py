"""A trace file as the profile of a cell; `python -m` does it in a process of its own.

The process writes one `Told` in msgpack. Whoever starts it bounds its time, and its
memory is bounded here: what a file makes of itself is not known before it is read.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from warpbook_monitors.budget import EXCEEDED, TRACES, hold
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.set_up import without_set_up
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.files.file_answer import Fault, Told
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.model import progress
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)
from warpbook_profiler.timeline.timeline_body import NotATimeline, drawn, pack
from warpbook_profiler.verdict import analysis


class FileProfile(NamedTuple):
    """A trace that was read."""

    profile: CellProfile
    #: without the set-up that the profile leaves out
    events: Columns
    run: Run


def read_profile(path: str) -> FileProfile:
    """Read and analyse a trace file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    return profile_of(*read_trace(path))


def profile_of(events: Columns, run: Run) -> FileProfile:
    """Analyse a trace that was read."""
    trace, set_up = without_set_up(Trace(events, run))
    profile = analysis.profile(trace)
    if set_up is not None:
        whole = profile.completeness
        warnings = (set_up.sentence, *whole.warnings)
        profile = replace(profile, completeness=replace(whole, warnings=warnings))
    return FileProfile(profile, trace.events, trace.run)


def tell(path: str) -> Told:
    """Read and analyse a trace file, or say why not."""
    try:
        read = read_profile(path)
        progress.tell("Preparing the timeline")
        timeline = pack(read.events, read.run)
    except TraceFileError as error:
        return Told(fault=_fault(error), problem=error.problem)
    except EXCEEDED:
        return Told(fault="too_large", problem=TRACES.words)
    except NotATimeline:
        return Told(read.profile)
    return Told(read.profile, timeline, int(drawn(read.events, read.run).sum()))


def _fault(error: TraceFileError) -> Fault:
    if isinstance(error, NotATrace):
        return "not_a_trace"
    if isinstance(error, TraceDamaged):
        return "damaged"
    return "too_large" if isinstance(error, TraceTooLarge) else "unreadable"


def _main() -> None:
    # the server, and the cells of whoever waits, go first
    os.nice(10)
    hold(TRACES)
    with progress.heard_by(_say):
        answer = tell(sys.argv[1])
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


def _say(now: progress.TraceProgress) -> None:
    """Write a line on stderr; nobody may read it any more."""
    with contextlib.suppress(OSError):
        sys.stderr.buffer.write(msgspec.json.encode(now) + b"\n")
        sys.stderr.flush()


if __name__ == "__main__":
    _main()
