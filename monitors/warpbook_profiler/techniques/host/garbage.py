"""Python's collector of garbage, which goes through all objects of the process."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import counted, duration_ns
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: of the profiled run, below which nobody looks for it
_LEAST_SHARE = 0.03


def garbage(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to collect garbage when the work is done."""
    threads = evidence.bare.program.host.threads
    spans = np.array(evidence.run.collections, np.int64).reshape(-1, 2)
    took_ns = int(spans[:, 1].sum())
    if took_ns <= _LEAST_SHARE * evidence.bare_run.profiled_ns or not threads:
        return
    begins = spans[:, 0] + evidence.run.start_ns
    ways = Ways(evidence)
    ways.drop_host(threads[0][0], begins, begins + spans[:, 1], in_worst=True)
    calls = [call for call in evidence.code.calls("collect") if call.receiver == "gc"]
    edit = SourceEdit(evidence.code)
    edit.delete_calls(calls)
    yield Proposal(
        name="gc",
        title=(
            "Move gc.collect() out of the measured work."
            if calls
            else "Turn Python's garbage collector off while this runs."
        ),
        evidence=(
            f"Python's garbage collector runs {counted(len(spans), 'time')}, "
            f"{duration_ns(took_ns)} of the profiled run."
        ),
        ways=ways,
        reason="" if calls else "Objects in reference cycles are then freed later.",
        line=calls[0].line if calls else None,
        code=edit.source(),
    )


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("gc",),
            what="Python's garbage collector runs while the GPU waits",
            time="predicted",
        ),
    ),
    rule=garbage,
    untried="A trial creates and frees other objects, so the collector takes as long.",
)
