"""Functions that are compiled while the cell runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import counted, duration_ns
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Columns, rows_by
from warpbook_profiler.events.intervals import levels
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: what torch's compiler calls the parts of its work
_MARK = "(dynamo_timed)"
#: and all of it
_WHOLE = "dynamo"
#: before it looks for what is compiled already
_LOOKUP = "TorchDynamo Cache Lookup"
#: of the profiled run, below which nobody looks for it
_LEAST_SHARE = 0.03


def compiling(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to compile before the cell, and once for all sizes."""
    parts = _parts(evidence)
    took_ns = int(parts.duration_ns.sum())
    if took_ns <= _LEAST_SHARE * evidence.bare_run.profiled_ns:
        return
    ways = Ways(evidence)
    for rows in rows_by(parts.track):
        mine = parts.rows(rows)
        ways.drop_host(int(mine.track[0]), mine.start_ns, mine.end_ns, in_worst=True)
    # what follows is done for the first time, too
    calls = evidence.calls.api
    after = calls.start_ns[calls.start_ns > parts.end_ns[-1]][:1]
    ways.drop_host(int(parts.track[-1]), parts.end_ns[-1:][: len(after)], after)
    line = _line(evidence)
    if line is not None:
        _drop_wrapping(evidence, ways)
    yield Proposal(
        name="recompiles",
        title=(
            "Compile in a separate cell, before this one."
            if line is not None
            else "Compile it once: with dynamic=True where sizes vary."
        ),
        evidence=(
            f"torch's compiler runs {counted(len(parts), 'time')} within the cell, "
            f"{duration_ns(took_ns)} of the profiled run."
        ),
        ways=ways,
        line=line or evidence.line_at(int(parts.start_ns[0])),
    )


def _drop_wrapping(evidence: Evidence, ways: Ways) -> None:
    """Take away what torch.compile itself does, up to the function's first call."""
    marks = evidence.operators.annotations
    lookups = np.array([name == _LOOKUP for name in marks.names] or [False])
    first = np.flatnonzero(lookups[marks.name])[:1]
    begun = np.array([evidence.run.start_ns])
    called_ns = evidence.calls.api.start_ns
    if len(first) and not (called_ns < marks.start_ns[first[0]]).any():
        ways.drop_host(int(marks.track[first[0]]), begun, marks.start_ns[first])


def _parts(evidence: Evidence) -> Columns:
    """Return the outermost spans in which the compiler works."""
    marks = evidence.operators.annotations
    is_part = [name.endswith(_MARK) or name == _WHOLE for name in marks.names]
    marks = marks.where(np.array(is_part or [False])[marks.name])
    chosen = [
        rows[top]
        for rows in rows_by(marks.track)
        for top, _ in [next(iter(levels(marks.start_ns[rows], marks.end_ns[rows])))]
    ]
    order = np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, np.int64)
    return marks.rows(order)


def _line(evidence: Evidence) -> int | None:
    """Return the line of the cell that has a function compiled."""
    for node in ast.walk(evidence.code.tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.compile":
            return node.lineno
    return None


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("recompiles",),
            what="functions that torch compiles while the cell runs",
            time="predicted",
        ),
    ),
    rule=compiling,
    untried="The cell's code would have to run in another order than it is written.",
)
