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
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import distinct
from warpbook_profiler.techniques.host.waits import (
    HOST_WAITS,
    formats_numbers,
    printed_groups,
    reads_in_turns,
)
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_LEAST_PRINTS = 3
_TITLE = "Collect what is printed, and print it once after the loop."
_SHOWS = ("print", "display", "write", "set_postfix", "debug", "info", "warning")


def printing(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to gather and print once."""
    operators, calls = evidence.operators, evidence.calls
    groups = list(printed_groups(operators))
    in_loop = evidence.code.calls(*_SHOWS, in_loop=True)
    # what the cell calls prints, too
    others = len(groups) - len(evidence.code.calls(*_SHOWS))
    is_here = evidence.code.is_known and not in_loop and others < _LEAST_PRINTS
    if len(groups) < _LEAST_PRINTS or is_here:
        # a number in a text is read as any other
        for one in reads_in_turns(evidence) if formats_numbers(evidence) else ():
            yield replace(one, name="print-once", title=_TITLE, code="")
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
