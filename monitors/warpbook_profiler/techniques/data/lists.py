"""Lists of Python that a loop makes into tensors one by one, each copied by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    bound_names,
    leaves,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.loops import range_end
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.turns import LAZY
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Category, Int64s, distinct
from warpbook_profiler.facts.calls import TO_GPU, named
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_COPIES = frozenset("aten::to aten::copy_ aten::_to_copy".split())
#: torch calls it for what a list became
_FRESH = "aten::lift_fresh"
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
#: they give what the GPU has computed
_READS = ("item", "tolist", "cpu", "numpy")
_PARTS = (_FRESH, "aten::detach_", "aten::empty")
_MAKES = "tensor as_tensor LongTensor FloatTensor IntTensor asarray".split()
#: fewer are no loop
_LEAST_COPIES = 8
#: of larger ones the bytes take the time
_MOST_BYTES = 256 << 10
#: operators around a copy, among which the list's tensor is
_NEAR = 3


def lists(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one tensor of all lists, copied once."""
    operators, gpu = evidence.operators, evidence.gpu
    flow = ValueFlow(evidence.code)
    calls = [
        call for call in evidence.code.calls(*_MAKES, in_loop=True) if call.node.args
    ]
    own = [call.node for call in calls if _is_known_before(flow, call.node)]
    if calls and not own:
        return
    copies = _copies(evidence)
    if len(copies) < _LEAST_COPIES:
        return
    outer = distinct(operators.outer[copies])
    waits = evidence.waits_within(outer)
    ways = Ways(evidence)
    ways.drop(operators.launched_within(outer[1:]))
    table = operators.table
    thread, gone = int(table.track[outer[0]]), outer[1:]
    ways.drop_host(thread, table.start_ns[gone], table.end_ns[gone], in_worst=True)
    # at worst the conversion of a list takes all that is around its copy
    starts_ns, ends_ns = _spans(evidence, gone)
    ways.drop_host(thread, starts_ns, ends_ns)
    total = int(gpu.size_bytes[copies].sum())
    took_ns = int(table.duration_ns[outer].sum())
    yield Proposal(
        name="tensor-once",
        title="Convert all lists to one tensor before the loop, and index its rows.",
        evidence=(
            f"Python lists are converted to tensors {len(copies):,} times, and each "
            f"tensor is copied to the GPU separately, {size(total)} in total: "
            f"{duration_ns(took_ns)} of the host's time, with {len(waits):,} waits."
        ),
        ways=ways,
        reason="All lists must have the same length, or be padded to it.",
        operator=operators.name(int(outer[0])),
        line=own[0].lineno if own else evidence.line_at(int(table.start_ns[outer[0]])),
        code=_edited(evidence, flow, own, copies),
    )


def _copies(evidence: Evidence) -> Int64s:
    """Return the small copies to the GPU of what was a list just before."""
    operators, gpu = evidence.operators, evidence.gpu
    to_gpu = named(gpu, TO_GPU)
    small = to_gpu & gpu.is_in(Category.COPY) & (gpu.size_bytes <= _MOST_BYTES)
    copies = np.flatnonzero(small & (gpu.size_bytes > 0))
    copies = copies[operators.outer[copies] != NONE]
    by = operators.outer[copies]
    is_copied = np.array([operators.name(int(at)) in _COPIES for at in by], np.bool_)
    tops = np.flatnonzero(operators.outermost)
    fresh = np.append(np.flatnonzero(operators.named(_FRESH)), 2**60)
    # torch.tensor(list, device=…) copies before it, torch.tensor(list).to(…) after it
    at, place = np.searchsorted(tops, by), np.searchsorted(tops, fresh[:-1])
    near = (np.abs(place - one) <= _NEAR for one in at)
    is_near = np.array([one.any() for one in near], np.bool_)
    chosen: Int64s = copies[is_copied & is_near] if len(copies) else copies
    return chosen


def _spans(evidence: Evidence, outer: Int64s) -> tuple[Int64s, Int64s]:
    """Return when each tensor is made, from its first operator to its last."""
    operators = evidence.operators
    tops = np.flatnonzero(operators.outermost)
    is_part = operators.named(*_COPIES, *_PARTS)[tops]
    # runs of such operators; a copy's run is what makes its tensor
    edges = np.flatnonzero(np.diff(is_part.astype(np.int8), prepend=0, append=0))
    begins, ends = edges[::2], edges[1::2]
    at = np.searchsorted(tops, outer)
    run = distinct(np.searchsorted(begins, at, side="right") - 1)
    table = operators.table
    return table.start_ns[tops[begins[run]]], table.end_ns[tops[ends[run] - 1]]


def _is_known_before(flow: ValueFlow, call: ast.Call) -> bool:
    """Tell whether what a list is made of is there before the loop around it."""
    loops = [one for one in flow.around(call) if isinstance(one, _LOOPS)]
    if not loops:
        return False
    made = getattr(loops[0], "generators", [loops[0]])
    targets = set().union(*(bound_names(one.target) for one in made if _has(one)))
    given = flow.value(call.args[0])
    parts = [part for part in ast.walk(given) if isinstance(part, ast.Name | ast.Call)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    # those of a comprehension are its own
    names -= bound_names(given)
    reads = any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in _READS
        for part in parts
    )
    return not reads and not names & (stored_names(loops[0]) - targets)


def _has(loop: ast.AST) -> bool:
    return hasattr(loop, "target")


class _Loop(NamedTuple):
    """A loop or a comprehension, whose turns take one list each."""

    target: ast.expr
    iter: ast.expr
    body: ast.Module
    #: it is, or is a part of
    statement: ast.stmt


def _loop(flow: ValueFlow, call: ast.Call) -> _Loop | None:
    """Return the innermost loop around a call, if each of its turns makes it once."""
    statement = flow.statement(call)
    for above in flow.around(call):
        if isinstance(above, ast.For):
            body = ast.Module(list[ast.stmt](above.body), [])
            leaves = _leaves(above)
            return None if leaves else _Loop(above.target, above.iter, body, above)
        if isinstance(above, ast.ListComp | ast.GeneratorExp):
            between = [one for one in flow.around(above) if isinstance(one, ast.expr)]
            is_sure = isinstance(statement, SIMPLE) and all(
                isinstance(one, ast.Call | ast.BinOp) for one in between
            )
            turns, *others = above.generators
            if others or turns.ifs or not is_sure or statement is None:
                return None
            body = ast.Module([ast.Expr(above.elt)], [])
            return _Loop(turns.target, turns.iter, body, statement)
        is_each_turn = isinstance(above, (*SIMPLE, ast.With, ast.expr))
        if not is_each_turn or isinstance(above, LAZY):
            return None
    return None


def _edited(
    evidence: Evidence, flow: ValueFlow, made: list[ast.Call], copies: Int64s
) -> str:
    """Write one tensor before the loop, of which each turn takes its part."""
    if len(made) != 1:
        return ""
    (call,) = made
    edit, loop = SourceEdit(evidence.code), _loop(flow, call)
    if loop is None or ast.unparse(call.func).rpartition(".")[0] != "torch":
        return ""
    whole: ast.expr = call
    above = flow.parent(call)
    move = flow.parent(above) if isinstance(above, ast.Attribute) else None
    if isinstance(above, ast.Attribute) and isinstance(move, ast.Call):
        if above.attr in ("to", "cuda"):
            whole = move
    (given, *_) = call.args
    targets = bound_names(loop.target)
    # what else it takes must be there before the loop, and rows of a leaf are no leaves
    is_stored = bool(names_in(whole) & stored_names(loop.body))
    is_stored |= any(
        sum(uses(part, name) for name in targets) != 1 for part in (whole, given)
    )
    is_leaf = any(one.arg == "requires_grad" for one in call.keywords)
    if is_stored or is_leaf or not _is_kept(loop.body, given):
        return ""
    match flow.statement(whole):
        case ast.Assign(targets=[ast.Name(id=name)]) if flow.is_written(name):
            # autograd counts what is written to views of one tensor together
            return ""
    operators = evidence.operators
    by = distinct(operators.direct[copies]).tolist()
    dtypes = {operators.operands(at).dtypes[:2] for at in by}
    if len(dtypes) > 1 or () in dtypes:
        # one tensor of whole numbers and others makes all of them floats
        return ""
    sizes = evidence.gpu.size_bytes[copies]
    is_of_one_length = bool((sizes == sizes[0]).all())
    if not is_of_one_length and operators.named(_FRESH).sum() > len(copies):
        # an empty list, which nothing copies, becomes floats whatever others become
        return ""
    stack = _stack_of(flow, whole)
    if stack is not None and is_of_one_length:
        made_of = f"[{edit.text(given)} {_clause(edit, loop)}]"
        text = edit.text(whole)
        text = text.replace(edit.text(call), _called(edit, call, made_of), 1)
        edit.replace(stack, text)
        return edit.source()
    tensors = edit.free_name("tensors")
    target, parts = ast.unparse(loop.target), ""
    if isinstance(given, ast.Subscript) and ast.unparse(given.slice) == target:
        end = range_end(loop.iter)
        rows, row = f"{edit.text(given.value)}[:{end}]", f"{tensors}[{target}]"
        if not end or not is_of_one_length:
            return ""
    elif _root(given) is not None and _is_plain(loop):
        turns, row = edit.free_name("turns"), edit.free_name("row")
        one = edit.text(given)
        edit.before(loop.statement, f"{turns} = list({edit.text(loop.iter)})")
        edit.replace(loop.target, f"{target}, {row}")
        edit.replace(loop.iter, f"zip({turns}, {tensors})")
        each = f"for {target} in {turns}"
        rows = turns if target == one else f"[{one} {each}]"
        if not is_of_one_length:
            item = edit.free_name("item")
            rows = f"[{item} {each} for {item} in {one}]"
            parts = f".split([len({one}) {each}])"
    else:
        return ""
    text = edit.text(whole).replace(edit.text(call), _called(edit, call, rows), 1)
    edit.before(loop.statement, f"{tensors} = {text}{parts}")
    edit.replace(whole, row)
    return edit.source()


def _is_plain(loop: _Loop) -> bool:
    """Tell whether a loop goes over names that it does not read otherwise."""
    match loop.iter:
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=over, keywords=[]):
            pass
        case over_all:
            over = [over_all]
    return all(
        isinstance(one, ast.Name) and not uses(loop.body, one.id) for one in over
    )


def _is_kept(body: ast.Module, given: ast.expr) -> bool:
    """Tell whether a loop takes its lists by one expression, so it writes to none."""
    rows = given.value if isinstance(given, ast.Subscript) else given
    if not isinstance(rows, ast.Name):
        rows = _root(given) or rows
    return isinstance(rows, ast.Name) and uses(body, rows.id) == 1


def _root(node: ast.expr) -> ast.Name | None:
    """Return the name of what holds a list, "row" of `row["words"]` or `row.words`."""
    match node:
        case ast.Name():
            return node
        case ast.Attribute(value=inner):
            return _root(inner)
        case ast.Subscript(value=inner, slice=ast.Constant()):
            return _root(inner)
    return None


def _stack_of(flow: ValueFlow, made: ast.expr) -> ast.Call | None:
    """Return the call that stacks a list of such tensors alone, one of each turn."""
    listed = flow.parent(made)
    match listed, None if listed is None else flow.parent(listed):
        case (
            ast.ListComp(generators=[ast.comprehension(ifs=[])]),
            ast.Call(args=[only], keywords=[]) as stack,
        ) if only is listed and ast.unparse(stack.func) == "torch.stack":
            return stack
    return None


def _clause(edit: SourceEdit, loop: _Loop) -> str:
    return f"for {ast.unparse(loop.target)} in {edit.text(loop.iter)}"


def _called(edit: SourceEdit, call: ast.Call, rows: str) -> str:
    given = [rows, *(ast.unparse(one) for one in (*call.args[1:], *call.keywords))]
    return f"{edit.text(call.func)}({', '.join(given)})"


def _leaves(loop: ast.For) -> bool:
    return bool(loop.orelse) or leaves(loop)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("tensor-once",),
            what="Python lists converted to GPU tensors one by one in a loop",
            time="predicted",
        ),
    ),
    rule=lists,
    untried=BY_EDIT,
)
