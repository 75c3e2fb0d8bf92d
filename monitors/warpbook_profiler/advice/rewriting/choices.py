"""Branches on a tensor's value in a loop, as choices that the GPU makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.turns import loaded, rewritten, whole_loops

_LOGICAL = {ast.And: "logical_and", ast.Or: "logical_or"}
#: a GPU that is told a place outside of a tensor does nothing any more
_INDEXES = frozenset(
    "gather take take_along_dim index_select index_add index_copy index_fill "
    "index_put masked_scatter scatter scatter_add scatter_reduce embedding one_hot "
    "cross_entropy nll_loss bincount multinomial".split()
)
#: after a loop, of what was a number before it
_NUMBER = "{name} = {name}.item() if hasattr({name}, 'item') else {name}"


class _UnsureError(Exception):
    """An arm does more than set names."""


def choices(code: CellCode) -> Iterator[str]:
    """Write the branches of each loop that set names as calls of where."""
    for loop in whole_loops(code.tree):
        try:
            text = _chosen(code, loop)
        except _UnsureError:
            continue
        if text:
            yield text


def _chosen(code: CellCode, loop: ast.For | ast.While) -> str:
    edit, numbers = SourceEdit(code), set[str]()
    computed, numeric = _computed(loop), _numbers(code)
    found = [
        one
        for one in loop.body
        if isinstance(one, ast.If) and loaded(one.test) & computed
    ]
    # of `for i in range(n)`, and of `enumerate`
    counts = _counts(loop)
    for name, value in _read_for(loop, found):
        edit.replace(value, rewritten(ast.Expr(value), _unread))
        numbers.add(name)
    for branch in found:
        chosen = edit.free_name("chosen")
        lines = [f"{chosen} = {_condition(branch.test, edit)}"]
        taken, others = (
            _arm(edit, arm, end, lines, counts)
            for arm, end in ((branch.body, "then"), (branch.orelse, "otherwise"))
        )
        for name in sorted(taken.keys() | others.keys()):
            one, other = taken.get(name, name), others.get(name, name)
            lines.append(f"{name} = {edit.torch}.where({chosen}, {one}, {other})")
        edit.before(branch, "\n".join(lines[:-1]))
        edit.replace(branch, lines[-1])
        numbers |= (taken.keys() | others.keys()) & numeric
    if numbers:
        edit.after(loop, "\n".join(_NUMBER.format(name=one) for one in sorted(numbers)))
    return edit.source() if found else ""


def _counts(loop: ast.For | ast.While) -> set[str]:
    """Return the names that hold how many turns there were."""
    match loop:
        case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name("range"))):
            return {name}
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Name("enumerate")),
        ):
            return {name}
    return set()


def _read_for(
    loop: ast.For | ast.While, branches: list[ast.If]
) -> Iterator[tuple[str, ast.expr]]:
    """Find the numbers that the host reads for branches alone, `e = loss.item()`."""
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                others = [one for one in loop.body if one not in branches]
                is_read = any(name in loaded(one) for one in others)
                if not is_read and any(name in loaded(one) for one in branches):
                    if _unread(value) is not None:
                        yield name, value


def _computed(loop: ast.For | ast.While) -> set[str]:
    """Return the names that turns compute, and do not only count."""
    return {
        name
        for part in ast.walk(ast.Module(loop.body, []))
        if isinstance(part, ast.Assign)
        and any(isinstance(one, ast.Call | ast.BinOp) for one in ast.walk(part.value))
        for target in part.targets
        for name in stored_names(target)
    }


def _numbers(code: CellCode) -> set[str]:
    """Return the names that are set to a number of Python somewhere."""
    found = set[str]()
    for part in ast.walk(code.tree):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                match target, part.value:
                    case ast.Tuple(elts=names), ast.Tuple(elts=values):
                        pairs = [*zip(names, values, strict=False)]
                    case _:
                        pairs = [(target, part.value)]
                for name, value in pairs:
                    if isinstance(name, ast.Name) and _is_number(value):
                        found.add(name.id)
    return found


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.Call(func=ast.Name(id="float" | "int")):
            return True
        case ast.Call(func=ast.Attribute(attr="item")):
            return True
        case ast.Attribute(attr="inf"):
            return True
    return False


def _condition(test: ast.expr, edit: SourceEdit) -> str:
    match test:
        case ast.BoolOp(op=op, values=[first, *others]):
            text = _condition(first, edit)
            for one in others:
                name = f"{edit.torch}.{_LOGICAL[type(op)]}"
                text = f"{name}({text}, {_condition(one, edit)})"
            return text
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"{edit.torch}.logical_not({_condition(operand, edit)})"
    return rewritten(ast.Expr(test), _unread)


def _unread(node: ast.expr) -> ast.expr | None:
    """Leave out that the host reads a value."""
    match node:
        case ast.Call(func=ast.Attribute(attr="item", value=value), args=[]):
            return value
        case ast.Call(func=ast.Name(id="float" | "bool"), args=[ast.Call() as value]):
            return value
    return None


def _names(tree: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}


def _has_calls(tree: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(tree))


def _is_safe(node: ast.AST, counts: set[str]) -> bool:
    """Tell whether an arm may be computed where it is not chosen."""
    match node:
        case ast.Subscript(slice=place):
            # a loop's own count is checked by the host
            return _names(place) <= counts and not _has_calls(place)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.removesuffix("_") == name and name not in _INDEXES
        case ast.Call(func=ast.Name(id=name)):
            return name in ("float", "int", "bool", "abs", "max", "min")
        case ast.Call() | ast.NamedExpr() | ast.Await() | ast.Yield():
            return False
    return True


def _arm(
    edit: SourceEdit, arm: list[ast.stmt], end: str, lines: list[str], counts: set[str]
) -> dict[str, str]:
    """Write an arm with names of its own; return these by the names that it sets."""
    names: dict[str, str] = {}

    def renamed(node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in names:
            return ast.Name(names[node.id], ast.Load())
        return _unread(node)

    for one in arm:
        match one:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AugAssign(target=ast.Name() as target, op=op, value=operand):
                value = ast.BinOp(ast.Name(target.id, ast.Load()), op, operand)
            case ast.Pass():
                continue
            case _:
                raise _UnsureError
        if not all(_is_safe(part, counts) for part in ast.walk(value)):
            raise _UnsureError
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        set_now = [part.id for part in parts if isinstance(part, ast.Name)]
        if len(set_now) != len(parts):
            raise _UnsureError
        text = rewritten(ast.Expr(value), renamed)
        names |= {name: edit.free_name(f"{name}_{end}") for name in set_now}
        lines.append(f"{', '.join(names[name] for name in set_now)} = {text}")
    return names
