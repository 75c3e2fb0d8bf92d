"""Waits for the GPU in each turn of a loop that does not need them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import Call
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.facts.calls import named
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_WAIT = re.compile(r"(cuda|hip)(Device|Stream|Event)Synchronize")
#: a result that the host reads after the wait, or what it writes anew
_TO_PINNED = re.compile(r"Memcpy (DtoH \(Device -> Pinned|HtoD \(Pinned)")
#: of a number, for which `.item()` waits itself
_NUMBER_BYTES = 8
#: fewer are no loop
_LEAST_WAITS = 4
#: a source with more is judged by the first
_MOST_CALLS = 200
#: what runs its statements again and again, perhaps
_TURNS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef)
#: a clock is read behind the wait
_CLOCKS = (
    "perf_counter perf_counter_ns time time_ns monotonic monotonic_ns process_time "
    "elapsed_time timer default_timer"
).split()


def waits_in_loop(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to leave the waits out."""
    api, gpu = evidence.calls.api, evidence.gpu
    waits = _waits(evidence)
    is_read = named(gpu, _TO_PINNED) & (gpu.size_bytes > _NUMBER_BYTES)
    # streams are not in order with one another
    is_needed = bool(is_read.any()) or len(distinct(gpu.track)) > 1
    if len(waits) < _LEAST_WAITS or is_needed:
        return
    found = evidence.code.calls("synchronize")[:_MOST_CALLS]
    flow, timed = ValueFlow(evidence.code), evidence.code.calls(*_CLOCKS)
    clocks = {turns for one in timed for turns in _turns(flow, one)}
    repeated = [call for call in found if next(_turns(flow, call), None)]
    measured = {name for turns in clocks for name in _called(turns)}
    needless = [
        call
        for call in repeated
        if (turns := next(_turns(flow, call))) not in clocks
        and getattr(turns, "name", None) not in measured
    ]
    # what the cell calls waits, too
    is_hidden = len(waits) - len(found) >= _LEAST_WAITS and not clocks
    if not needless and (repeated or not is_hidden):
        return
    edit, ways = SourceEdit(evidence.code), Ways(evidence)
    edit.delete_calls(needless)
    # the last one stays, as the cell's end
    ways.drop_calls(waits[:-1])
    waited_ns = int(api.duration_ns[waits].sum())
    names = sorted({api.names[at] for at in api.name[waits].tolist()})
    yield Proposal(
        name="sync-in-loop",
        title="Remove the wait from the loop: the GPU runs its work in order anyway.",
        evidence=(
            f"The host calls {' and '.join(names)} {len(waits):,} times, and waits "
            f"{duration_ns(waited_ns)} in the profile; nothing is read after it."
        ),
        ways=ways,
        line=needless[0].line
        if needless
        else evidence.line_at(int(api.start_ns[waits[0]])),
        code=edit.source(),
        is_shown_without_gain=True,
    )


def _waits(evidence: Evidence) -> Int64s:
    """Return the waits that no operator asks for."""
    api, table = evidence.calls.api, evidence.operators.table
    outer = table.where(evidence.operators.outermost)
    waits = np.flatnonzero(named(api, _WAIT) & (api.start_ns >= evidence.run.start_ns))
    inside = np.zeros(len(waits), np.bool_)
    for thread in distinct(api.track[waits]).tolist():
        mine = outer.where(outer.track == thread)
        spans = Coverage(mine.start_ns, mine.end_ns)
        inside |= (api.track[waits] == thread) & spans.holds(api.start_ns[waits])
    alone: Int64s = waits[~inside]
    return alone


def _turns(flow: ValueFlow, call: Call) -> Iterator[ast.AST]:
    """Return the loops and functions that a call is in, the innermost first."""
    return (one for one in flow.around(call.node) if isinstance(one, _TURNS))


def _called(turns: ast.AST) -> Iterator[str]:
    """Give the names of the functions that turns call: a clock may be around them."""
    for node in ast.walk(turns):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("sync-in-loop",),
            what="`synchronize()` in a loop, four times or more, without a clock",
            time="predicted, also that it gains nothing",
            answers=HOST_WAITS,
            lab="read-the-trace",
        ),
    ),
    rule=waits_in_loop,
    untried=BY_EDIT,
)
