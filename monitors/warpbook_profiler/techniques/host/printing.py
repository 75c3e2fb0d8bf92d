"""Tensors that are printed in a loop: formatting one asks the GPU many times."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from warpbook_profiler.advice.code.cell_code import Call, CellCode
from warpbook_profiler.advice.code.read_code import loop_around
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct, rows_by
from warpbook_profiler.techniques.host.waits import (
    HOST_WAITS,
    formats_numbers,
    reads_in_turns,
)
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: with what the formatting of a tensor of floats begins
_BEGINS = ("aten::isfinite", "aten::ne", "aten::__and__", "aten::masked_select")
#: what follows, and what comes just before
_GOES_ON = frozenset(
    f"aten::{name}"
    for name in "abs to min max unbind ceil ne is_nonzero div gt lt item detach select "
    "reshape".split()
)
_BEFORE = frozenset(("aten::reshape", "aten::select"))
_LEAST_PRINTS = 3
_TITLE = "Collect what is printed, and print it once after the loop."
_SHOWS = ("print", "display", "write", "set_postfix", "debug", "info", "warning")


def printing(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to gather and print once."""
    operators, calls = evidence.operators, evidence.calls
    groups = list(_printed_groups(operators))
    in_loop = evidence.code.calls(*_SHOWS, in_loop=True)
    # what the cell calls prints, too
    others = len(groups) - len(evidence.code.calls(*_SHOWS))
    is_here = evidence.code.is_known and not in_loop and others < _LEAST_PRINTS
    if not groups and formats_numbers(evidence):
        # a number in a text is read as any other
        for one in reads_in_turns(evidence):
            yield replace(one, name="print-once", title=_TITLE, code="")
    if len(groups) < _LEAST_PRINTS or is_here:
        return
    table, ways = operators.table, Ways(evidence)
    ways.drop(operators.launched_within(np.concatenate(groups)))
    first = np.array([group[0] for group in groups])
    last = np.array([group[-1] for group in groups])
    waits = 0
    for thread in distinct(table.track[first]).tolist():
        mine = table.track[first] == thread
        start_ns, end_ns = table.start_ns[first[mine]], table.end_ns[last[mine]]
        ways.drop_host(int(thread), start_ns, end_ns)
        waiting = calls.api.start_ns[calls.waits & (calls.api.track == thread)]
        edges = np.searchsorted(waiting, [start_ns, end_ns])
        waits += int((edges[1] - edges[0]).sum())
    call = in_loop[0] if in_loop else None
    yield Proposal(
        name="print-once",
        title=_TITLE,
        evidence=(
            f"A tensor on the GPU is printed {len(groups):,} times: formatting it "
            f"reads values back {waits:,} times, and each waits for the GPU."
        ),
        ways=ways,
        is_bound=True,
        reason="The one print at the end also takes time.",
        operator="aten::item",
        line=call.line if call else evidence.line_at(int(table.start_ns[groups[0][0]])),
        code=_once(evidence.code, call),
    )


def printed(evidence: Evidence) -> Int64s:
    """Give the outermost operators of all that format a tensor."""
    groups = list(_printed_groups(evidence.operators))
    return np.concatenate(groups) if groups else np.zeros(0, np.int64)


def _printed_groups(operators: Operators) -> Iterator[Int64s]:
    outer = np.flatnonzero(operators.outermost)
    begins = [operators.named(name) for name in _BEGINS]
    goes_on = operators.named(*_GOES_ON)
    for rows in rows_by(operators.table.track[outer]):
        mine = outer[rows]
        length = len(mine) - len(begins) + 1
        if length <= 0:
            continue
        first = np.ones(length, np.bool_)
        for place, fits in enumerate(begins):
            first &= fits[mine[place : place + length]]
        ends = np.append(np.flatnonzero(~goes_on[mine]), len(mine))
        for begin in np.flatnonzero(first).tolist():
            end = int(ends[np.searchsorted(ends, begin + len(begins))])
            is_reshaped = begin and operators.name(int(mine[begin - 1])) in _BEFORE
            yield mine[begin - bool(is_reshaped) : end]


def _once(code: CellCode, call: Call | None) -> str:
    """Write that the one value of each print is kept, and printed after the loop."""
    loop = None if call is None else loop_around(code, call.node)
    if call is None or loop is None or call.name != "print" or call.receiver:
        return ""
    if len(code.calls(*_SHOWS, in_loop=True)) > 1:
        # what is shown would come in another order
        return ""
    values = [one for one in call.node.args if not isinstance(one, ast.Constant)]
    if len(values) != 1 or isinstance(values[0], ast.JoinedStr | ast.Starred):
        return ""
    edit = SourceEdit(code)
    kept, shown = edit.free_name("printed"), edit.free_name("shown")
    edit.before(loop, f"{kept} = []")
    # a copy: the loop may write the next one to the same memory
    copied = f"{edit.operand(values[0])}.detach().clone()"
    edit.replace(call.node, f"{kept}.append({copied})")
    arguments = [
        f"{shown}.cpu()" if one is values[0] else edit.text(one)
        for one in call.node.args
    ]
    arguments += [
        f"{keyword.arg}={edit.text(keyword.value)}" for keyword in call.node.keywords
    ]
    edit.after(loop, f"for {shown} in {kept}:\n    print({', '.join(arguments)})")
    return edit.source()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("print-once",),
            what="tensors printed in a loop",
            time="a bound",
            answers=HOST_WAITS,
        ),
    ),
    rule=printing,
    untried=BY_EDIT,
)
