"""Norms and factors of many tensors, each of which one call computes for all."""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    blocks,
    names_in,
    replaced,
)
from warpbook_profiler.advice.code.each_turn import (
    BUILTINS,
    MAKES,
    PASSES,
    UNSURE,
    Each,
    each,
    each_of,
    is_plain,
    is_plain_call,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

_GATHERS = frozenset("sum list tuple sorted min max".split())
_MAYBE = (*UNSURE, ast.IfExp, ast.BoolOp, ast.Compare)


def _is_own(
    flow: ValueFlow, node: ast.expr | None, seen: frozenset[str] = frozenset()
) -> bool:
    """Tell whether a value is a number, or a tensor that looks at no other's memory."""
    match node:
        case ast.Constant() | ast.BinOp() | ast.Compare():
            return True
        case ast.IfExp(body=one, orelse=other):
            return _is_own(flow, one, seen) and _is_own(flow, other, seen)
        case ast.Name(id=name) if name not in seen:
            # a function's argument may be anything
            settings, seen = flow.settings(name), seen | {name}
            return (
                bool(settings)
                and not flow.takes(name)
                and all(
                    isinstance(one, ast.AugAssign)
                    or (
                        isinstance(one, ast.Assign | ast.AnnAssign)
                        and not _is_unpacked(one)
                        and _is_own(flow, one.value, seen)
                    )
                    for one in settings
                )
            )
        case ast.Call(func=ast.Name(id="min" | "max"), args=given):
            return all(_is_own(flow, one, seen) for one in given)
        case ast.Call(func=ast.Name(id=name)):
            return name in BUILTINS
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            if name in PASSES:
                return _is_own(flow, value, seen)
            return name in MAKES or ast.unparse(value) == "math"
    return False


def _is_unpacked(setting: ast.Assign | ast.AnnAssign) -> bool:
    targets = setting.targets if isinstance(setting, ast.Assign) else []
    return any(isinstance(one, ast.Tuple | ast.List) for one in targets)


def norms_at_once(code: CellCode) -> str:
    """Write the cell with one call for all norms, and one for all factors."""
    edit, flow, changed = SourceEdit(code), ValueFlow(code), set[bool]()
    for block in blocks(code.tree):
        for statement in block.statements:
            turn = each(edit, statement)
            if turn is None or len(turn.body) != 1:
                continue
            if _scale(edit, flow, statement, turn):
                changed.add(True)
            elif _sum(edit, flow, statement, turn):
                changed.add(False)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and _norms(
            edit, flow, node
        ):
            changed.add(False)
    return edit.source() if len(changed) == 2 else ""


def _scale(edit: SourceEdit, flow: ValueFlow, loop: ast.stmt, turn: Each) -> bool:
    match turn.body[0]:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="mul_" | "div_" as name, value=scaled),
                args=[factor],
                keywords=[],
            )
        ):
            pass
        case ast.AugAssign(
            target=ast.Attribute() as scaled, value=factor, op=ast.Mult()
        ):
            name = "mul_"
        case _:
            return False
    if not turn.is_free(factor) or turn.is_free(scaled):
        return False
    # what is scaled changes no factor of a later turn
    is_kept = is_plain(factor) and all(
        _is_own(flow, one)
        for one in ast.walk(factor)
        if isinstance(one, ast.Name) and one.id not in ("torch", "math", *BUILTINS)
    )
    if not (is_kept and is_plain(scaled) and turn.is_known(set())):
        return False
    # of no tensors there is no such call
    tensors = edit.free_name("scaled")
    edit.before(loop, f"{tensors} = {turn.gives(edit.text(scaled))}")
    call = f"{edit.torch}._foreach_{name}({tensors}, {edit.text(factor)})"
    edit.replace(loop, f"if {tensors}: {call}")
    return True


def _sum(edit: SourceEdit, flow: ValueFlow, loop: ast.stmt, turn: Each) -> bool:
    """Have a loop that adds norms up go through those that one call gives."""
    (statement,) = turn.body
    norms = [node for node in ast.walk(statement) if _normed(node) is not None]
    found = _normed(norms[0]) if norms else None
    kept = _kept_by(flow, statement)
    if found is None or kept is None or not turn.is_known(kept):
        return False
    norm = norms[0]
    if not is_plain(found.tensor) or kept & names_in(found.tensor):
        return False
    read = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "item"
        and node.func.value is norm
    ]
    if not isinstance(norm, ast.expr):
        return False
    one = edit.free_name("norm")
    part = read[0] if read else norm
    text = replaced(statement, part, f"{one}{found.power}")
    if turn.names & names_in(ast.parse(text)):
        return False
    tensors = edit.free_name("normed")
    edit.before(loop, f"{tensors} = {turn.gives(edit.text(found.tensor))}")
    all_norms = f"{edit.torch}._foreach_norm({tensors})"
    total, power = _added(statement), f"{one} ** 2" in text
    added = f"{one} ** 2" if power else one
    if not read and text in (f"{total} += {added}", f"{total} = {total} + {added}"):
        # one sum of all, and no operator for each
        summed = f"{edit.torch}.stack({all_norms}){'.square()' * power}.sum()"
        sign = "+=" if isinstance(statement, ast.AugAssign) else f"= {total} +"
        edit.replace(loop, f"if {tensors}: {total} {sign} {summed}")
        return True
    if read:
        all_norms = f"{edit.torch}.stack({all_norms}).tolist()"
    all_norms = f"({all_norms} if {tensors} else [])"
    edit.replace(loop, f"for {one} in {all_norms}: {text}")
    return True


def _kept_by(flow: ValueFlow, statement: ast.stmt) -> set[str] | None:
    """Give the name that a turn keeps a norm by; None where it does more than that."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name) as target, value=value):
            # in place, it would change what else looks at that memory
            is_kept = _is_own(flow, target)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            is_kept = True
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                args=[value],
                keywords=[],
            )
        ):
            is_kept = True
        case _:
            return None
    return {name} if is_kept and is_plain(value) else None


def _added(statement: ast.stmt) -> str:
    """Give the name that a statement adds to; empty for another one."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
            return name
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(left=ast.Name(id=first), op=ast.Add()),
        ) if name == first:
            return name
    return ""


def _norms(
    edit: SourceEdit, flow: ValueFlow, made: ast.ListComp | ast.GeneratorExp
) -> bool:
    """Have norms that are listed or added up be those that one call gives."""
    norms = [node for node in ast.walk(made.elt) if _normed(node) is not None]
    found = _normed(norms[0]) if norms else None
    if found is None or len(made.generators) != 1:
        return False
    (clause,) = made.generators
    turn = each_of(edit, clause)
    one, norm = edit.free_name("norm"), norms[0]
    statement = flow.statement(made)
    if not isinstance(statement, SIMPLE) or clause.is_async:
        return False
    is_known = turn.is_known(set()) and is_plain(made.elt)
    if not (is_known and _is_first(flow, made, statement)):
        return False
    tensors = edit.free_name("normed")
    all_norms = f"({edit.torch}._foreach_norm({tensors}) if {tensors} else [])"
    left = f"{one}{found.power}"
    if norm is not made.elt and isinstance(norm, ast.expr):
        left = replaced(ast.Expr(made.elt), norm, f"({left})")
    if turn.names & names_in(ast.parse(left)):
        return False
    edit.before(statement, f"{tensors} = {turn.gives(edit.text(found.tensor))}")
    if left == one:
        edit.replace(made, all_norms)
    elif isinstance(made, ast.ListComp):
        edit.replace(made, f"[{left} for {one} in {all_norms}]")
    else:
        # it may have no brackets of its own
        edit.replace(made, f"({left} for {one} in {all_norms})")
    return True


def _is_first(flow: ValueFlow, made: ast.expr, statement: ast.stmt) -> bool:
    """Tell whether a statement surely makes a list, and does nothing before it."""
    around = [one for one in flow.around(made) if isinstance(one, ast.expr)]
    above = flow.parent(made)
    if isinstance(made, ast.GeneratorExp):
        # its turns are those of who takes it
        match above:
            case ast.Call(func=ast.Name(id=name)) if name in _GATHERS:
                pass
            case _:
                return False
    if any(isinstance(one, _MAYBE) for one in around):
        return False
    others = set(ast.walk(statement)) - set(ast.walk(made)) - set(around)
    return all(is_plain_call(one) for one in others if isinstance(one, ast.Call))


class _Normed(NamedTuple):
    tensor: ast.expr
    #: what the norm is raised to
    power: str = ""


def _normed(node: ast.AST) -> _Normed | None:
    """Give what a call takes the Euclidean norm of; None for anything else."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    match node.func, node.args:
        case ast.Attribute(attr="norm" | "vector_norm", value=module), [tensor, *order]:
            if ast.unparse(module) not in ("torch", "torch.linalg", "linalg"):
                tensor, order = module, node.args
        case ast.Attribute(attr="norm", value=tensor), []:
            order = []
        case ast.Attribute(attr="sum", value=squared), []:
            match squared:
                case (
                    ast.BinOp(left=tensor, op=ast.Pow(), right=ast.Constant(value=2))
                    | ast.Call(
                        func=ast.Attribute(attr="pow", value=tensor),
                        args=[ast.Constant(value=2)],
                    )
                    | ast.Call(func=ast.Attribute(attr="square", value=tensor), args=[])
                ):
                    return _Normed(tensor, " ** 2")
            return None
        case _:
            return None
    is_two = all(isinstance(one, ast.Constant) and one.value == 2 for one in order)
    return _Normed(tensor) if is_two and len(order) < 2 else None
