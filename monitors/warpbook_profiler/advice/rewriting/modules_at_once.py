"""A loop that gives one input to many modules, or weights, as one call of all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    last_name,
    leaves,
    names_in,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.operations import Operation, operation
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.batches import FACTORS, batched_loops, batches
from warpbook_profiler.advice.rewriting.turns import Turns, loaded

#: what may be computed not at all, or later
_UNSURE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp)
_ALL_AT_ONCE = '''\
def {all_at_once}(modules, x):
    """Call modules on one input, those of the same linear layers at once."""
    if iter(modules) is modules:
        raise TypeError("they can be gone through once")
    modules, nn = list(modules), {torch}.nn
    chains = [[*one] if type(one) is nn.Sequential else [one] for one in modules]
    same = (nn.Linear, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Identity)
    # with its settings, as those of GELU
    kinds = {{
        tuple((repr(one), *(part.dtype for part in one.parameters())) for one in chain)
        for chain in chains
    }}
    parts = [part for chain in chains for part in chain]
    is_plain = len(kinds) == 1 and all(type(one) in same for one in parts)
    if not is_plain or any(
        one._forward_hooks or one._forward_pre_hooks for one in [*modules, *parts]
    ):
        return [one(x) for one in modules]
    rows, y = x.shape[:-1], x.reshape(1, -1, x.shape[-1])
    for layers in zip(*chains):
        if type(layers[0]) is nn.Linear:
            weight = {torch}.stack([one.weight for one in layers]).mT
            y = y.expand(len(layers), -1, -1)
            if layers[0].bias is None:
                y = {torch}.bmm(y, weight)
            else:
                bias = {torch}.stack([one.bias for one in layers])[:, None]
                y = {torch}.baddbmm(bias, y, weight)
        else:
            y = layers[0](y)
    return y.reshape(len(modules), *rows, -1).unbind()

'''


class _Turns(NamedTuple):
    """A loop or a clause, with the call of its module in each turn."""

    target: ast.expr
    iter: ast.expr
    call: ast.Call
    #: the list or dictionary of modules, as it is written
    modules: str


def modules_at_once(code: CellCode) -> Iterator[str]:
    """Write the cell with all modules of a loop called before it.

    What they are is seen when it runs: those that are not alike are called in turn.
    """
    edit, is_changed = SourceEdit(code), False
    function = edit.free_name("all_at_once")
    for node in ast.walk(code.tree):
        turns = next(_turns(node), None)
        if turns is None:
            continue
        one, target = edit.free_name("one"), edit.text(turns.target)
        if isinstance(turns.target, ast.Tuple) and not target.startswith("("):
            target = f"({target})"
        (given,) = turns.call.args
        made = f"{function}({turns.modules}, {edit.text(given)})"
        edit.replace(turns.target, f"{target}, {one}")
        edit.replace(turns.iter, f"zip({edit.text(turns.iter)}, {made})")
        edit.replace(turns.call, one)
        is_changed = True
    edit.at_start(_ALL_AT_ONCE.format(all_at_once=function, torch=edit.torch))
    text = edit.source() if is_changed else ""
    if text:
        yield text


def products_at_once(code: CellCode) -> Iterator[str]:
    """Write loops as batches whose turns multiply one input by a matrix each."""
    return batches(code, _is_weighted)


def loops_at_once(code: CellCode) -> Iterator[ast.AST]:
    """Give the loops and clauses that give one input to all modules, or weights."""
    yield from (node for node in ast.walk(code.tree) if any(_turns(node)))
    yield from (node for node, _ in batched_loops(code, _is_weighted))


def _is_weighted(turns: Turns) -> bool:
    changed, found = turns.given | turns.changed, False
    for node in (part for one in turns.body for part in walk(one)):
        if isinstance(node, ast.Call) and last_name(node.func) in FACTORS:
            # that is what takes time
            return False
        match operation(node):
            case Operation("matmul" | "mm" | "linear", [one, other, *_]):
                found |= bool(loaded(other) & turns.given) and not (
                    loaded(one) & changed
                )
    return found


def _turns(node: ast.AST) -> Iterator[_Turns]:
    """Give the turns of a loop whose module is called once in each."""
    match node:
        case ast.For(target=target, iter=over, body=statements, orelse=[]):
            body: list[ast.AST] = [*statements]
        case (
            ast.ListComp(elt=value, generators=[clause])
            | ast.GeneratorExp(elt=value, generators=[clause])
            | ast.DictComp(value=value, generators=[clause])
        ) if not clause.ifs and not clause.is_async:
            target, over, body = clause.target, clause.iter, [value]
        case _:
            return
    if any(map(leaves, body)):
        return
    inside = [part for one in body for part in ast.walk(one)]
    stored = stored_names(target).union(*map(stored_names, body))
    found = _modules(target, over)
    if found is None:
        return
    module, modules = found
    calls = [
        part
        for part in inside
        if isinstance(part, ast.Call) and ast.unparse(part.func) == module
    ]
    match calls:
        case [ast.Call(args=[given], keywords=[]) as call] if not (
            isinstance(given, ast.Starred) or names_in(given) & stored
        ):
            unsure = [part for part in inside if isinstance(part, (*_UNSURE, ast.stmt))]
            holds = [part for part in unsure if call in ast.walk(part)]
            is_own = all(
                isinstance(part, ast.Assign | ast.AugAssign | ast.Expr) and part in body
                for part in holds
            )
            # what it is called by may be another one in a later turn
            is_kept = not names_in(ast.parse(modules)) & stored
            if is_own and is_kept and not _runs_in_turn(given):
                yield _Turns(target, over, call, modules)


def _runs_in_turn(given: ast.expr) -> bool:
    """Tell whether an input is computed anew in each turn, maybe another one."""
    return any(isinstance(part, ast.Call) for part in ast.walk(given))


def _modules(target: ast.expr, over: ast.expr) -> tuple[str, str] | None:
    """Give what a turn calls its module by, and what holds all of them."""
    match target, over:
        case (
            ast.Name(id=name),
            ast.Name()
            | ast.Attribute()
            | ast.Call(func=ast.Attribute(attr="values" | "children"), args=[]),
        ):
            return name, ast.unparse(over)
        case (
            ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]),
            ast.Call(
                func=ast.Name(id="enumerate"),
                args=[ast.Name() | ast.Attribute() as held],
            ),
        ):
            return name, ast.unparse(held)
        case (
            ast.Tuple(elts=[ast.Name(), ast.Name(id=name)]),
            ast.Call(func=ast.Attribute(attr="items", value=held), args=[]),
        ):
            return name, f"{ast.unparse(held)}.values()"
        case (
            ast.Name(id=name),
            ast.Call(
                func=ast.Name(id="range"),
                args=[ast.Call(func=ast.Name(id="len"), args=[held])],
            ),
        ):
            return f"{ast.unparse(held)}[{name}]", ast.unparse(held)
    return None
