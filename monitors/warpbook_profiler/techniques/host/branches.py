"""Branches of Python on a tensor's value, for which the host waits for the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import CellCode, written
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import PRODUCT, is_number, steps
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_READ = "aten::is_nonzero"
#: fewer are no loop
_LEAST_READS = 4
#: after which a loop asks again whether to end
_TURNS = 8
#: what leaves a name as it is, where a branch is not taken
_NEUTRAL: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+=", "0"),
    ast.Sub: ("-=", "0"),
    ast.Mult: ("*=", "1"),
    ast.Div: ("/=", "1"),
}
_IN_PLACE = {"mul_": "1", "div_": "1", "add_": "0", "sub_": "0"}
#: methods whose result is one number in a tensor, where no axis is given
_REDUCES = frozenset("norm sum mean max min amax amin std var prod any all".split())
#: methods whose result has the size and dtype of their tensor
_KEEPS = frozenset("abs neg clamp add sub mul tanh sigmoid relu".split())
_OF_PYTHON = frozenset("np numpy math random time cp cupy".split())
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
#: they end the loop, so how often it turns depends on the value
_ENDS = (ast.Break, ast.Return, ast.Raise, ast.Continue)


class _Branch(NamedTuple):
    """An `if` in a loop whose test is a tensor."""

    node: ast.If
    #: statements that both arms have, in the order of the source
    body: tuple[ast.stmt, ...]


def branches(evidence: Evidence) -> Iterator[Proposal]:
    """Propose torch.where in place of a branch, and to ask less often when to end."""
    operators = evidence.operators
    reads = np.flatnonzero(operators.named(_READ) & operators.outermost)
    if len(reads) < _LEAST_READS or not len(evidence.waits_within(reads)):
        return
    found = list(tensor_branches(evidence.code))
    if found and all(_is_light(branch) for branch in found):
        yield _chosen_on_gpu(evidence, reads, found)
    end = None if found else _end(evidence.code)
    if end is not None:
        yield _asked_less(evidence, reads, end)


def _chosen_on_gpu(evidence: Evidence, reads: Int64s, found: list[_Branch]) -> Proposal:
    operators, ways = evidence.operators, Ways(evidence)
    choosing = operators.launched_within(reads)
    ways.resize(choosing, evidence.takes("kernel", len(choosing)))
    _drop_reads(evidence, ways, reads)
    launched = evidence.calls.launch[choosing]
    # those that an arm calls in the turns that did not take it
    more = _more_operators(evidence, reads, found)
    ways.add_host(launched, evidence.takes("operator").times(more))
    test = f"if {written(found[0].node.test)}"
    return Proposal(
        name="branch-on-gpu",
        title="Select with torch.where: the host then does not need the condition.",
        evidence=_evidence(evidence, reads, test),
        ways=ways,
        reason="Both branches are computed.",
        operator=_READ,
        line=found[0].node.lineno,
        code=_edited(evidence.code, found),
    )


def _asked_less(evidence: Evidence, reads: Int64s, end: ast.If | ast.While) -> Proposal:
    ways = Ways(evidence)
    left = np.arange(len(reads)) % _TURNS == _TURNS - 1
    ways.drop(evidence.operators.launched_within(reads[~left]))
    _drop_reads(evidence, ways, reads[~left])
    word = "while" if isinstance(end, ast.While) else "if"
    return Proposal(
        name="branch-on-gpu",
        title=f"Test whether to stop every {_TURNS} iterations, not in each.",
        evidence=_evidence(evidence, reads, f"{word} {written(end.test)}"),
        ways=ways,
        reason="A few more iterations may run.",
        operator=_READ,
        line=end.lineno,
    )


def _drop_reads(evidence: Evidence, ways: Ways, reads: Int64s) -> None:
    table = evidence.operators.table
    thread = int(table.track[reads[0]])
    ways.drop_host(thread, table.start_ns[reads], table.end_ns[reads], in_worst=True)


def _evidence(evidence: Evidence, reads: Int64s, test: str) -> str:
    waits = evidence.waits_within(reads)
    waited_ns = int(evidence.calls.api.duration_ns[waits].sum())
    return (
        f"The host reads a condition {len(reads):,} times for `{test}`, and waits for "
        f"the GPU each time, {duration_ns(waited_ns)} in the profile."
    )


def _end(code: CellCode) -> ast.If | ast.While | None:
    """Return what ends a loop by a condition that may be a tensor's."""
    flow = ValueFlow(code)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.While) and not isinstance(node.test, ast.Constant):
            return node
        if isinstance(node, ast.If) and _is_of_tensor(flow, node.test):
            if any(isinstance(one, ast.Break | ast.Return) for one in node.body):
                return node
    return None


def tensor_branches(code: CellCode) -> Iterator[_Branch]:
    """Find the branches in loops that look like a tensor's, and leave no loop."""
    flow = ValueFlow(code)
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.If) or not flow.is_repeated(node):
            continue
        body = (*node.body, *node.orelse)
        leaves = any(isinstance(part, _ENDS) for one in body for part in ast.walk(one))
        if _is_of_tensor(flow, node.test) and not leaves:
            yield _Branch(node, body)


def _is_of_tensor(flow: ValueFlow, test: ast.expr) -> bool:
    """Tell whether a condition may be a tensor: no counter, no flag of Python."""
    if isinstance(test, ast.UnaryOp):
        return _is_of_tensor(flow, test.operand)
    if flow.is_item(test):
        return True
    if isinstance(test, ast.Compare):
        if not all(isinstance(one, _ORDERS) for one in test.ops):
            return False
        return any(_computes(flow, one) for one in (test.left, *test.comparators))
    return isinstance(test, ast.Call) and _computes(flow, test)


def _computes(flow: ValueFlow, node: ast.expr) -> bool:
    value = flow.value(node)
    if is_number(value) or isinstance(value, ast.Constant):
        return False
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call)]
    reads = any(
        isinstance(call.func, ast.Attribute) and call.func.attr in ("item", "tolist")
        for call in calls
    )
    return bool(calls) and not reads


def _is_light(branch: _Branch) -> bool:
    """Tell whether both arms only pass over their tensors."""
    for statement in branch.body:
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            return False
        for step in steps(statement):
            if step.is_opaque or PRODUCT in step.names:
                return False
    return True


def _more_operators(evidence: Evidence, reads: Int64s, found: list[_Branch]) -> float:
    """Return how many operators a turn has more, where each computes its arms."""
    names = [
        {f"aten::{name}{end}" for name in step.names for end in ("", "_")}
        for branch in found
        for statement in branch.body
        for step in steps(statement)
        if not step.is_optional
    ]
    operators = evidence.operators
    launching = operators.launching
    ends_ns = operators.table.end_ns[reads]
    after = np.searchsorted(operators.table.start_ns[launching], ends_ns)
    taken = 0
    for at in after.tolist():
        called = launching[at : at + len(names)].tolist()
        arm = zip(map(operators.name, called), names, strict=False)
        taken += len(called) == len(names) and all(one in some for one, some in arm)
    return 1 + len(names) * (1 - taken / len(reads))


def _edited(code: CellCode, found: list[_Branch]) -> str:
    """Write each branch as choices, where all its statements can be."""
    edit, flow = SourceEdit(code), ValueFlow(code)
    for branch in found:
        node = branch.node
        if node.orelse:
            return ""
        masked = _masked(edit, flow, node)
        if masked:
            edit.replace(node, masked)
            continue
        tensor = _tested(flow, node.test)
        if len(found) > 1 or tensor is None:
            return ""
        test = edit.text(node.test)
        is_once = len(node.body) == 1
        name = test if is_once else edit.free_name("chosen")
        lines = [] if is_once else [f"{name} = {test}"]
        for statement in node.body:
            line = _chosen(edit, flow, statement, name, tensor)
            if not line:
                return ""
            lines.append(line)
        if lines[:-1]:
            edit.before(node, "\n".join(lines[:-1]))
        edit.replace(node, lines[-1])
    return edit.source()


def _masked(edit: SourceEdit, flow: ValueFlow, node: ast.If) -> str:
    """Write `if m.any(): x[m] = 0` without its test: no element is none to change."""
    match node.body:
        case [
            ast.Assign(
                targets=[ast.Subscript(slice=ast.Name() as mask) as masked],
                value=ast.Constant() | ast.UnaryOp() as number,
            )
        ] if isinstance(flow.value(mask), ast.Compare):
            if ast.unparse(node.test) in (f"{mask.id}.any()", f"torch.any({mask.id})"):
                return f"{edit.text(masked)} = {edit.text(number)}"
    return ""


def _tested(flow: ValueFlow, test: ast.expr) -> ast.expr | None:
    """Return the tensor that a condition reduces to one element."""
    if not isinstance(test, ast.Compare):
        return _reduced(flow, test)
    sides = (test.left, *test.comparators)
    reduced = (_reduced(flow, side) for side in sides if len(sides) == 2)
    return next((tensor for tensor in reduced if tensor is not None), None)


def _reduced(flow: ValueFlow, node: ast.expr) -> ast.expr | None:
    """Return the tensor that `x.norm()` reduces to one element."""
    match flow.value(node):
        case ast.Call(
            func=ast.Attribute(attr=name, value=tensor), args=[], keywords=[]
        ) if name in _REDUCES:
            names = {one.id for one in ast.walk(tensor) if isinstance(one, ast.Name)}
            return None if names & _OF_PYTHON else tensor
    return None


def _keeps(flow: ValueFlow, node: ast.expr, name: str) -> bool:
    """Tell whether a value has the size of this name, which it passes over."""
    match node:
        case ast.Name(id=own):
            return own == name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _keeps(flow, operand, name)
        case ast.BinOp(left=left, op=operator, right=right):
            sides = [one for one in (left, right) if not _keeps(flow, one, name)]
            is_known = type(operator) in _NEUTRAL and len(sides) < 2
            return is_known and all(_is_scalar(flow, one) for one in sides)
        case ast.Call(func=ast.Attribute(attr=method, value=tensor), args=given):
            others = [*given, *(keyword.value for keyword in node.keywords)]
            is_known = method in _KEEPS and _keeps(flow, tensor, name)
            return is_known and all(_is_scalar(flow, one) for one in others)
    return False


def _is_scalar(flow: ValueFlow, node: ast.expr) -> bool:
    """Tell whether a value is a number, or a tensor of one element."""
    if isinstance(node, ast.BinOp):
        return _is_scalar(flow, node.left) and _is_scalar(flow, node.right)
    return is_number(node) or _reduced(flow, node) is not None


def _chosen(
    edit: SourceEdit, flow: ValueFlow, statement: ast.stmt, test: str, tensor: ast.expr
) -> str:
    """Write a statement that leaves all as it is where the condition does not hold.

    Args:
        edit: of the cell.
        flow: of its values.
        statement: one of the branch.
        test: the condition's text.
        tensor: what the condition reduces.
    """
    where = f"{edit.torch}.where"
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if _keeps(flow, value, name):
                return f"{name} = {where}({test}, {edit.text(value)}, {name})"
        case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
            sign, neutral = _NEUTRAL.get(type(operator), ("", ""))
            # a name that is reduced is a tensor, a count may be a number
            if sign and _keeps(flow, tensor, name):
                chosen = f"{where}({test}, {edit.text(value)}, {neutral})"
                return f"{name} {sign} {chosen}"
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr=method) as function, args=[value], keywords=[]
            )
        ) if method in _IN_PLACE:
            text = f"{where}({test}, {edit.text(value)}, {_IN_PLACE[method]})"
            return f"{edit.text(function)}({text})"
    return ""


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("branch-on-gpu",),
            what="an `if` on a tensor's value in a loop, whose branches do little",
            time="predicted",
            answers=HOST_WAITS,
        ),
    ),
    rule=branches,
    untried=BY_EDIT,
)
