"""Running averages of many tensors, such as a model's weights, one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode, blocks, names_in
from warpbook_profiler.advice.code.each_turn import Each, each, each_of, is_apart
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.joined_loops import (
    OF_LOOP,
    are_alike,
    are_averages,
    in_optimizer,
    join,
)
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import Repeat, repeats
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_LEAST_TENSORS = 16
#: one of these is in each
_FIRST = ("aten::lerp_", "aten::lerp", "aten::mul_", "aten::mul", "aten::sub")
#: passes over a tensor: the average is read and written, and the new value read
_PASSES = 3
_SAME = 1e-9
#: methods that give each key once
_NAMED = frozenset("items keys named_parameters named_buffers named_modules".split())


class _Average(NamedTuple):
    """`average` moves to `value` by the share `weight`."""

    average: ast.expr
    value: ast.expr
    weight: ast.expr


def foreach_ema(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one call that moves all averages."""
    operators = evidence.operators
    loops = list(_loops(operators))
    if not loops:
        return
    ways, kernels, tensors = Ways(evidence), np.zeros(0, np.int64), 0
    for loop, turns in loops:
        events = join(evidence, ways, loop, turns, _PASSES, OF_LOOP)
        kernels, tensors = np.append(kernels, events), max(tensors, turns)
    first = int(loops[0][0][0])
    yield Proposal(
        name="foreach-ema",
        title="Update all running averages at once: torch._foreach_lerp_.",
        evidence=(
            f"The averages of {tensors:,} tensors are updated one by one: "
            f"{len(kernels):,} kernels, "
            f"{units.share(evidence.share(evidence.time_ns(kernels)))} of the bare run."
        ),
        ways=ways,
        operator=operators.name(first),
        line=evidence.line_at(int(operators.table.start_ns[first])),
        code=_at_once(evidence.code)
        if all(are_alike(operators, loop) for loop, _ in loops)
        else "",
    )


def _loops(operators: Operators) -> Iterator[tuple[Int64s, int]]:
    """Give the operators of loops over averages, and how many there are."""
    is_first = operators.named(*_FIRST) & operators.outermost
    if np.count_nonzero(is_first) < _LEAST_TENSORS:
        return
    launches = np.zeros(len(operators.table), np.bool_)
    launches[operators.outer_of(operators.launching)] = True
    selects = operators.named("aten::select")
    for repeat in repeats(operators, _LEAST_TENSORS):
        if selects[repeat.one].any():
            # of one tensor, whose parts a loop goes through: a scan
            continue
        one = repeat.one[launches[repeat.one]]
        is_known = are_averages(operators, one) or _makes_averages(operators, repeat)
        if not is_known or in_optimizer(operators, repeat.one[0]):
            continue
        if any(_takes_two(operators, at) for at in one.tolist()):
            yield repeat.operators[launches[repeat.operators]], repeat.turns


def _makes_averages(operators: Operators, repeat: Repeat) -> bool:
    """Tell whether turns call nothing but `lerp`, of tensors of several sizes."""
    # turns of a simulation take the same one again
    one = [operators.operands(at).dims[:1] for at in repeat.operators.tolist()]
    are_lerps = operators.named("aten::lerp")[repeat.operators].all()
    return bool(are_lerps) and len(set(one)) > 1


def _takes_two(operators: Operators, position: int) -> bool:
    """Tell whether an operator takes two tensors of one size."""
    dims = [sizes for sizes in operators.operands(position).dims if sizes]
    return len(dims) > 1 and dims[0] == dims[1]


def _at_once(code: CellCode) -> str:
    """Write the cell with one call in the place of its loop over averages."""
    edit, in_place, of_new = SourceEdit(code), 0, 0
    for block in blocks(code.tree):
        for statement in block.statements:
            turn = each(edit, statement)
            if turn is None:
                of_new += _gathered(edit, statement)
                continue
            found = _average(turn.body)
            if found is None:
                of_new += _stored(edit, statement, turn)
                continue
            if _assigned(turn.body) - {ast.unparse(found.average)}:
                continue
            is_each = turn.is_free(found.weight) and not turn.is_free(found.average)
            if (
                is_each
                and isinstance(statement, ast.For)
                and is_apart(statement, found.average, found.value)
            ):
                moved = _moved(edit, statement, turn, found)
                edit.replace(statement, moved.in_place())
                in_place += 1
    # sums may be of Python's numbers, as metrics are: the trace knows of one's tensors
    is_sure = of_new == 0 or (of_new == 1 and not in_place)
    return edit.source() if in_place + of_new and is_sure else ""


class _Moved(NamedTuple):
    """The call that moves all, and a list of what each turn has beside."""

    #: may be empty, which the call does not take
    pairs: str
    lists: str
    function: str
    keys: str

    def in_place(self) -> str:
        return f"if {self.pairs}: {self.function}._foreach_lerp_({self.lists})"

    def new(self) -> str:
        return f"{self.function}._foreach_lerp({self.lists}) if {self.pairs} else []"


def _moved(
    edit: SourceEdit,
    statement: ast.stmt,
    turn: Each,
    found: _Average,
    key: ast.expr | None = None,
) -> _Moved:
    """Write a list of all averages and values before a statement."""
    pairs, old, new = map(edit.free_name, ("pairs", "old", "new"))
    names, texts = [old, new], [edit.text(found.average), edit.text(found.value)]
    if key is not None:
        names, texts = [edit.free_name("key"), *names], [edit.text(key), *texts]
    every = turn.gives(f"({', '.join(texts)})")
    edit.before(statement, f"{pairs} = {every}")
    *keys, olds, news = (f"[{one} for {', '.join(names)} in {pairs}]" for one in names)
    return _Moved(
        pairs, f"{olds}, {news}, {edit.text(found.weight)}", edit.torch, "".join(keys)
    )


def _gathered(edit: SourceEdit, statement: ast.stmt) -> bool:
    """Have a list or dictionary of new averages be made by one call."""
    match statement:
        case (
            ast.Assign(
                value=ast.DictComp(value=value, generators=[clause])
                | ast.ListComp(elt=value, generators=[clause]) as made
            )
            | ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="update"),
                    args=[ast.DictComp(value=value, generators=[clause]) as made],
                )
            )
        ):
            pass
        case _:
            return False
    turn, found = each_of(edit, clause), next(_mixed(value), None)
    if found is None or clause.is_async or not turn.is_free(found.weight):
        return False
    key = made.key if isinstance(made, ast.DictComp) else None
    moved = _moved(edit, statement, turn, found, key)
    result = moved.new()
    whole = f"list({result})" if key is None else f"dict(zip({moved.keys}, {result}))"
    edit.replace(made, whole)
    return True


def _stored(edit: SourceEdit, loop: ast.stmt, turn: Each) -> bool:
    """Have a loop put the new averages that one call gives into their places."""
    match turn.body:
        case [ast.Assign(targets=[ast.Subscript() as place], value=value)]:
            its = (one for one in _mixed(value) if _is_same(one.average, place))
            found = next(its, None)
        case _:
            return False
    if found is None or turn.is_free(place.slice) or not _are_keys(loop, place):
        return False
    held = names_in(place.value)
    if not turn.is_free(found.weight, place.value) or held & names_in(found.value):
        # a turn may take what the one before it made
        return False
    moved = _moved(edit, loop, turn, found, place.slice)
    at, one = map(edit.free_name, ("at", "one"))
    edit.replace(
        loop,
        f"for {at}, {one} in zip({moved.keys}, {moved.new()}): "
        f"{edit.text(place.value)}[{at}] = {one}",
    )
    return True


def _are_keys(loop: ast.stmt, place: ast.Subscript) -> bool:
    """Tell whether each turn stores in a place of its own."""
    if not isinstance(loop, ast.For):
        return False
    target, source = loop.target, loop.iter
    first = target.elts[0] if isinstance(target, ast.Tuple) else target
    match source:
        case ast.Call(func=ast.Attribute(attr=name)) if name in _NAMED:
            pass
        case ast.Call(func=ast.Name(id="enumerate" | "range")):
            pass
        case _ if not _is_same(source, place.value):
            return False
    return _is_same(first, place.slice)


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def _mixed(value: ast.expr) -> Iterator[_Average]:
    """Read a new average: two by their shares, or one moved by a share."""
    match value:
        case ast.BinOp(left=one, op=ast.Add(), right=other):
            for old, new in ((one, other), (other, one)):
                for average, kept in _factors(old):
                    for moved, weight in _factors(new):
                        if _is_rest(kept, weight):
                            yield _Average(average, moved, weight)
                for difference, weight in _factors(new):
                    match difference:
                        case ast.BinOp(left=moved, op=ast.Sub(), right=again) if (
                            _is_same(again, old)
                        ):
                            yield _Average(old, moved, weight)
        case ast.Call(func=ast.Attribute(attr="lerp", value=average), keywords=[]):
            match (average, *value.args):
                case (ast.Name(id="torch"), old, moved, weight) | (old, moved, weight):
                    yield _Average(old, moved, weight)


def _average(body: list[ast.stmt]) -> _Average | None:
    """Read what moves an average by a share; None for anything else."""
    is_plain = all(isinstance(one, ast.Expr | ast.Assign) for one in body)
    match [getattr(statement, "value", None) for statement in body if is_plain]:
        case [
            ast.Call(
                func=ast.Attribute(attr="lerp_", value=average),
                args=[value, weight],
                keywords=[],
            )
        ]:
            return _Average(average, value, weight)
        case [
            ast.Call(func=ast.Attribute(attr="add_", value=ast.Call() as scale)) as add
        ]:
            return _in_place(scale, add)
        case [
            ast.Call(func=ast.Attribute(value=average)) as scale,
            ast.Call(func=ast.Attribute(attr="add_", value=again)) as add,
        ] if _is_same(average, again):
            return _in_place(scale, add)
        case [
            ast.Call(
                func=ast.Attribute(attr="copy_", value=average),
                args=[ast.BinOp(left=one, op=ast.Add(), right=other)],
                keywords=[],
            )
        ]:
            for old, new in ((one, other), (other, one)):
                for again, kept in _factors(old):
                    for value, weight in _factors(new):
                        if _is_same(again, average) and _is_rest(kept, weight):
                            return _Average(average, value, weight)
    return None


def _assigned(body: list[ast.stmt]) -> set[str]:
    """Return what statements assign to."""
    return {
        ast.unparse(target)
        for statement in body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    }


def _in_place(scale: ast.Call, add: ast.Call) -> _Average | None:
    """Read `average.mul_(kept)` and `.add_(value, alpha=weight)`, or a product."""
    match scale, add.args, add.keywords:
        case (
            ast.Call(
                func=ast.Attribute(attr="mul_", value=average), args=[kept], keywords=[]
            ),
            [value],
            [ast.keyword(arg="alpha", value=weight)],
        ) if _is_rest(kept, weight):
            return _Average(average, value, weight)
        case (
            ast.Call(
                func=ast.Attribute(attr="mul_", value=average), args=[kept], keywords=[]
            ),
            [product],
            [],
        ):
            for value, weight in _factors(product):
                if _is_rest(kept, weight):
                    return _Average(average, value, weight)
    return None


def _factors(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give both factors of a product, either one first."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            yield left, right
            yield right, left


def _is_rest(kept: ast.expr, weight: ast.expr) -> bool:
    """Tell whether two factors are one together."""
    match kept, weight:
        case ast.Constant(value=float(one)), ast.Constant(value=float(other)):
            return abs(one + other - 1) < _SAME
    texts = ast.unparse(kept), ast.unparse(weight)
    return any(
        one in (f"1 - {other}", f"1.0 - {other}")
        for one, other in (texts, reversed(texts))
    )


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("foreach-ema",),
            what="running averages of weights that are updated one by one",
            time="predicted",
        ),
    ),
    rule=foreach_ema,
    untried=BY_EDIT,
)
