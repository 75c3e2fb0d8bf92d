"""Norms and factors of many tensors, each of which one call computes for all."""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import SIMPLE, CellCode, blocks, replaced
from warpbook_profiler.advice.code.source_edit import SourceEdit, bound_names, names_in
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: methods and functions that make what nothing else holds
_MAKES = frozenset(
    "norm vector_norm sum mean pow square sqrt rsqrt reciprocal clamp clamp_min "
    "clamp_max clip min max minimum maximum add sub mul div abs exp item stack "
    "zeros ones full tensor new_zeros new_ones new_full new_tensor tolist".split()
)
#: they give what they take, or a copy of it
_PASSES = frozenset("detach float double to cpu cuda type".split())
#: of a turn, before a norm is taken; they look at no numbers
_TELLS = frozenset(
    "isinstance hasattr len startswith endswith numel dim is_floating_point".split()
)
_FLAGS = frozenset("requires_grad is_leaf is_cuda is_sparse".split())
_BUILTINS = frozenset("float int abs sum min max list tuple sorted len".split())
_GOES_OVER = frozenset("enumerate zip reversed list tuple".split())
_HOLDS = frozenset("parameters named_parameters values items keys".split())
_GATHERS = frozenset("sum list tuple sorted min max".split())
#: they compute their parts later, not always, or bind names
_UNSURE = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom),
)
_MAYBE = (*_UNSURE, ast.IfExp, ast.BoolOp, ast.Compare)


class Each(NamedTuple):
    """What a loop does for each of several things, and how it goes through them."""

    body: list[ast.stmt]
    #: "for w in weights", with what leaves some out
    clause: str
    #: what the loop sets
    names: set[str]
    over: ast.expr
    tests: list[ast.expr]

    def gives(self, text: str) -> str:
        """Write the list of an expression of all turns."""
        return f"[{text} {self.clause}]"

    def is_free(self, *nodes: ast.expr) -> bool:
        """Tell whether expressions are the same in all turns."""
        return not any(self.names & names_in(node) for node in nodes)

    def is_known(self, stored: set[str]) -> bool:
        """Tell whether turns are the same ones before anything of them is done.

        Args:
            stored: names that turns set.
        """
        parts = [self.over, *self.tests]
        is_kept = not any(stored & names_in(part) for part in parts)
        return is_kept and _goes_over(self.over) and all(map(_tells, self.tests))


def each(edit: SourceEdit, loop: ast.stmt) -> Each | None:
    """Read a loop, whose statements an `if` may be around; None for others."""
    if not isinstance(loop, ast.For) or loop.orelse:
        return None
    body, tests = loop.body, list[ast.expr]()
    clause = f"for {edit.text(loop.target)} in {edit.text(loop.iter)}"
    match body:
        case [ast.If(test=test, body=[ast.Continue()], orelse=[]), *rest]:
            body, clause = rest, f"{clause} if not ({edit.text(test)})"
            tests.append(test)
        case [ast.If(test=test, body=rest, orelse=[])]:
            body, clause = rest, f"{clause} if {edit.text(test)}"
            tests.append(test)
    return Each(body, clause, bound_names(loop.target), loop.iter, tests)


def each_of(edit: SourceEdit, clause: ast.comprehension) -> Each:
    """Read the turns of a list or dictionary that is made."""
    text = f"for {edit.text(clause.target)} in {edit.text(clause.iter)}"
    text += "".join(f" if {edit.text(test)}" for test in clause.ifs)
    return Each([], text, bound_names(clause.target), clause.iter, clause.ifs)


def _goes_over(node: ast.expr) -> bool:
    """Tell whether a loop goes over what is there before, and nobody's generator."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return _goes_over(value)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=[]):
            return name in _HOLDS and _goes_over(value)
        case ast.Call(func=ast.Name(id="range"), args=given):
            return all(map(_is_plain, given))
        case ast.Call(func=ast.Name(id=name), args=given):
            return name in _GOES_OVER and all(map(_goes_over, given))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_plain, parts))
        case (
            ast.ListComp(elt=one, generators=[clause])
            | ast.GeneratorExp(elt=one, generators=[clause])
        ):
            is_known = _goes_over(clause.iter) and all(map(_tells, clause.ifs))
            return is_known and _is_plain(one)
    return False


def _tells(test: ast.expr) -> bool:
    """Tell whether a condition looks at no tensor's numbers."""
    match test:
        case ast.BoolOp(values=parts):
            return all(map(_tells, parts))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _tells(inner)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return _is_plain(test)
        case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()]):
            return _is_plain(test)
        case ast.Compare(left=ast.Call() as left, comparators=[ast.Constant()]):
            return _tells(left)
        case ast.Attribute(attr=name):
            return name in _FLAGS and _is_plain(test)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            parts = [*test.args, *ast.iter_child_nodes(test.func)]
            return name in _TELLS and all(map(_is_plain, parts))
    return False


def _is_plain(node: ast.AST) -> bool:
    """Tell whether an expression changes nothing, and calls no unknown function."""
    return (
        not isinstance(node, _UNSURE)
        and (not isinstance(node, ast.Call) or _is_plain_call(node))
        and all(map(_is_plain, ast.iter_child_nodes(node)))
    )


def _is_plain_call(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in _BUILTINS
        case ast.Attribute(attr=name, value=value):
            return name in _MAKES | _PASSES or ast.unparse(value) == "math"
    return False


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
                        and not isinstance(getattr(one, "targets", [0])[0], ast.Tuple)
                        and _is_own(flow, one.value, seen)
                    )
                    for one in settings
                )
            )
        case ast.Call(func=ast.Name(id="min" | "max"), args=given):
            return all(_is_own(flow, one, seen) for one in given)
        case ast.Call(func=ast.Name(id=name)):
            return name in _BUILTINS
        case ast.Call(func=ast.Attribute(attr=name, value=value)):
            if name in _PASSES:
                return _is_own(flow, value, seen)
            return name in _MAKES or ast.unparse(value) == "math"
    return False


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
    is_kept = _is_plain(factor) and all(
        _is_own(flow, one)
        for one in ast.walk(factor)
        if isinstance(one, ast.Name) and one.id not in ("torch", "math", *_BUILTINS)
    )
    if not (is_kept and _is_plain(scaled) and turn.is_known(set())):
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
    if not _is_plain(found.tensor) or kept & names_in(found.tensor):
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
    return {name} if is_kept and _is_plain(value) else None


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
    is_known = turn.is_known(set()) and _is_plain(made.elt)
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
    return all(_is_plain_call(one) for one in others if isinstance(one, ast.Call))


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
