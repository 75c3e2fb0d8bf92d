"""Attentions of a source whose keys and values come once for each query head."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    blocks,
    bound_names,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.read_code import times_set
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: functions of other cells and of libraries, such as repeat_kv
_WIDENS = re.compile(r"repeat|expand|widen|tile|broadcast")


class _InTurn(NamedTuple):
    """What an expression makes of one of two, which it calls by a name."""

    made: ast.expr
    name: str
    whole: ast.expr

    @property
    def parts(self) -> set[str]:
        """Give the names that are read for it."""
        return (names_in(self.made) - {self.name}) | names_in(self.whole)


class _Made(NamedTuple):
    """Assignments right before an attention, the last one first."""

    statements: list[ast.stmt]
    #: by name, what it was set to
    values: dict[str, ast.expr | _InTurn]

    def read(self, name: str) -> set[str]:
        """Give the names that are read for a value."""
        value = self.values[name]
        return value.parts if isinstance(value, _InTurn) else names_in(value)


def grouped(code: CellCode, is_sure: bool = True) -> str:
    """Write attentions that widen their heads themselves with heads as they were.

    Args:
        code: the cell.
        is_sure: take only what the source tells to widen heads. Else a function may
            do so by its name, and sizes may be those of heads.
    """
    edit, flow, is_changed = SourceEdit(code), ValueFlow(code), False
    for call in code.calls("scaled_dot_product_attention"):
        arguments, keywords = call.node.args, call.node.keywords
        if any(one.arg in ("enable_gqa", "key", "value", None) for one in keywords):
            continue
        made = _made_before(code, flow, call.node)
        narrow = _both(code, arguments[1:], made, is_sure)
        if narrow is None or not _leave_out(code, edit, flow, call.node, made):
            continue
        texts = [edit.operand(one) for one in narrow]
        if len(arguments) == 2:
            edit.replace(arguments[1], ", ".join(texts))
        else:
            edit.replace(arguments[1], texts[0])
            edit.replace(arguments[2], texts[1])
        edit.arguments(call.node, {"enable_gqa": "True"})
        is_changed = True
    return edit.source() if is_changed else ""


def _both(
    code: CellCode, given: list[ast.expr], made: _Made, is_sure: bool
) -> tuple[ast.expr, ast.expr] | None:
    """Give the keys and values before their heads came several times."""
    both: list[ast.expr | _InTurn]
    match given:
        case [ast.Starred(value=one)]:
            both = [*_of_each(made.values.get(ast.unparse(one), one))]
        case [key, value]:
            both = [made.values.get(ast.unparse(one), one) for one in (key, value)]
        case _:
            return None
    narrow = [_narrow(code, one, is_sure) for one in both]
    match narrow:
        case [ast.expr() as key, ast.expr() as value]:
            return key, value
    return None


def _of_each(made: ast.expr | _InTurn) -> list[_InTurn]:
    """Read `[widen(x) for x in (k, v)]`, or `map(widen, (k, v))`."""
    match made:
        case (
            ast.ListComp(elt=value, generators=[clause])
            | ast.GeneratorExp(elt=value, generators=[clause])
        ):
            match clause:
                case ast.comprehension(
                    target=ast.Name(id=name),
                    iter=ast.Tuple(elts=[key, other]) | ast.List(elts=[key, other]),
                    ifs=[],
                ):
                    pass
                case _:
                    return []
            return [_InTurn(value, name, whole) for whole in (key, other)]
        case ast.Call(
            func=ast.Name(id="map"),
            args=[ast.Name() as function, ast.Tuple(elts=[key, other])],
        ):
            turn = ast.Name("_", ast.Load())
            call = ast.Call(function, [turn], [])
            return [_InTurn(call, "_", whole) for whole in (key, other)]
    return []


def _made_before(code: CellCode, flow: ValueFlow, call: ast.Call) -> _Made:
    """Find the assignments of keys and values right before an attention."""
    made = _Made([], {})
    names = {ast.unparse(one).removeprefix("*") for one in call.args[1:]}
    statement = flow.statement(call)
    for block in blocks(code.tree):
        if statement not in block.statements:
            continue
        for one in reversed(block.statements[: block.statements.index(statement)]):
            values = _assigned(one)
            is_of_both = values.keys() <= names - made.values.keys()
            # what the later one takes is not what the earlier one gives
            read = {name for later in made.values for name in made.read(later)}
            if not values or not is_of_both or values.keys() & read:
                break
            made.statements.append(one)
            made.values.update(values)
    return made


def _assigned(statement: ast.stmt) -> dict[str, ast.expr | _InTurn]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return {name: value}
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)])],
            value=ast.Tuple(elts=[first, second]),
        ):
            return {one: first, other: second}
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)])],
            value=value,
        ):
            return dict(zip((one, other), _of_each(value), strict=False))
    return {}


def _leave_out(
    code: CellCode, edit: SourceEdit, flow: ValueFlow, call: ast.Call, made: _Made
) -> bool:
    """Take assignments away that only an attention needs; False where others do."""
    inside = {part for one in made.statements for part in ast.walk(one)}
    inside |= set(ast.walk(call))
    loop, function = flow.loop(call), flow.function(call)
    is_again = False
    for name in made.values:
        reads = set(flow.reads(name))
        if function is not None:
            reads &= set(ast.walk(function))
        before = _set_before(code, flow, made, name, loop)
        if before is not None:
            # of what is not wide yet
            reads -= {part for one in before for part in ast.walk(one)}
        if reads - inside:
            return False
        if flow.is_set_once(name) and name not in made.read(name):
            continue
        if before is None and (loop is not None or function is None):
            return False
        is_again |= function is None
    for statement in made.statements:
        edit.delete(statement)
    if is_again and isinstance(loop, ast.For):
        # the names hold what they did after the last turn
        leaves = (ast.Break, ast.Continue)
        is_whole = set(made.statements) <= set(loop.body) and not loop.orelse
        if not is_whole or any(isinstance(one, leaves) for one in ast.walk(loop)):
            return False
        for statement in reversed(made.statements):
            edit.after(loop, ast.unparse(statement))
        return True
    return not is_again


def _set_before(
    code: CellCode,
    flow: ValueFlow,
    made: _Made,
    name: str,
    loop: ast.For | ast.AsyncFor | ast.While | None,
) -> list[ast.stmt] | None:
    """Give what is between where a turn sets a name anew and where it is widened.

    Returns:
        None where a turn, or a cell, may begin with what an earlier one made.
    """
    if not made.statements:
        return None
    is_item = isinstance(loop, ast.For) and name in stored_names(loop.target)
    is_argument = loop is None and flow.function(made.statements[0]) is not None
    for block in blocks(code.tree):
        if made.statements[-1] not in block.statements:
            continue
        before = block.statements[: block.statements.index(made.statements[-1])]
        sets = [one for one in before if name in stored_names(one)]
        is_plain = all(isinstance(one, ast.Assign) for one in sets)
        if loop is not None and times_set(loop, name) != 1 + is_item + len(sets):
            return None
        if is_plain and (is_argument or is_item):
            return before
        if is_plain and loop is not None and sets:
            return before[before.index(sets[0]) + 1 :]
    return None


def _narrow(
    code: CellCode, heads: ast.expr | _InTurn, is_sure: bool
) -> ast.expr | None:
    """Give what heads were before each came several times; None where not known."""
    if isinstance(heads, _InTurn):
        whole = _narrow(code, heads.made, is_sure)
        is_it = whole is not None and ast.unparse(whole) == heads.name
        return heads.whole if is_it else None
    match heads:
        case ast.Call(func=ast.Name(id=name), args=[whole, *others]):
            return whole if _widens(code, name, others, is_sure) else None
        case ast.Call(
            func=ast.Attribute(attr="repeat_interleave", value=whole), args=args
        ):
            if ast.unparse(whole) == "torch" and args:
                whole, *args = args
            axes = [*args[1:], *(one.value for one in heads.keywords)]
            is_third = [ast.unparse(one) for one in axes] in (["1"], ["-3"])
            return whole if is_third else None
    return _of_expand(heads, {}, code.tree if is_sure else None)


def _of_expand(
    heads: ast.expr, values: dict[str, ast.expr], tree: ast.AST | None
) -> ast.expr | None:
    """Read `x[:, :, None].expand(...).reshape(...)` and the like.

    Args:
        heads: what is read.
        values: what names in it stand for.
        tree: where sizes are set; None where sizes may be any.
    """
    sizes: list[list[ast.expr]] = []
    for names in (("reshape", "flatten"), ("expand",)):
        match heads:
            case ast.Call(func=ast.Attribute(attr=name, value=before), args=given) if (
                name in names
            ):
                heads = before
                sizes.append(given)
            case _:
                return None
        if isinstance(heads, ast.Name):
            heads = values.get(heads.id, heads)
    whole: ast.expr | None = None
    match heads:
        case ast.Call(
            func=ast.Attribute(attr="unsqueeze", value=before),
            args=[ast.Constant(value=2)],
        ):
            whole = before
        case ast.Subscript(value=before, slice=ast.Tuple(elts=axes)):
            is_third = [ast.unparse(one) for one in axes[:3]] == [":", ":", "None"]
            is_all = all(ast.unparse(one) == ":" for one in axes[3:])
            whole = before if is_third and is_all else None
    if (
        whole is None
        or tree is None
        or _are_heads(sizes[0], sizes[1], _axes(tree, whole))
    ):
        return whole
    return None


def _are_heads(
    shape: list[ast.expr], expanded: list[ast.expr], axes: dict[str, int]
) -> bool:
    """Tell whether sizes are those of heads that come several times, one by one.

    Args:
        shape: what is given to `reshape` or `flatten`.
        expanded: what is given to `expand`.
        axes: names that hold sizes, and of which of the four axes.
    """
    texts = [ast.unparse(one) for one in expanded]
    kept = [axes.get(one, one) for one in texts[:2] + texts[3:]]
    is_kept = [one in ("-1", at) for at, one in enumerate(kept)] == [True] * 4
    texts = [ast.unparse(one) for one in shape]
    is_merged = texts == ["1", "2"] or (
        # the size that is left out is what is left
        len(texts) == 4 and [axes.get(texts[at]) for at in (0, 2, 3)] == [0, 2, 3]
    )
    return is_kept and is_merged


def _axes(tree: ast.AST, whole: ast.expr) -> dict[str, int]:
    """Give the names that only hold a tensor's sizes, and of which axis each."""
    bound = Counter(
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    )
    axes = dict[str, int]()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if len(
                names
            ) == 4 and _is_shape(value, ast.unparse(whole)):
                for at, name in enumerate(names):
                    if isinstance(name, ast.Name) and bound[name.id] == 1:
                        axes[name.id] = at
    return axes


def _is_shape(value: ast.expr, of: str) -> bool:
    return ast.unparse(value) in (f"{of}.shape", f"{of}.size()")


def _widens(code: CellCode, name: str, others: list[ast.expr], is_sure: bool) -> bool:
    """Tell whether a function gives its first argument widened.

    One of another cell is only known by its name.
    """
    if name not in bound_names(code.tree):
        # a pattern, as einops takes it, may order the heads otherwise
        texts = any(isinstance(getattr(one, "value", 0), str) for one in others)
        return not is_sure and bool(_WIDENS.search(name)) and not texts
    match [node for node in ast.walk(code.tree) if getattr(node, "name", "") == name]:
        case [
            ast.FunctionDef(
                args=ast.arguments(args=[ast.arg(arg=first), *_]), decorator_list=[]
            ) as function
        ] if name not in stored_names(code.tree):
            pass
        case _:
            return False
    values = dict[str, ast.expr]()
    *before, last = function.body
    for statement in before:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if not values:
                values[target] = value
            case ast.Assign(value=value) if _is_shape(value, first):
                # a value that has the argument's name may have other sizes
                if values:
                    return False
            case ast.If(body=[ast.Return(value=ast.Name(id=same))], orelse=[]):
                # where there is nothing to widen, it may give them back
                if same != first or values:
                    return False
            case ast.Expr(value=ast.Constant()):
                pass
            case _:
                return False
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    # its value, which may have the argument's name, is what is made to heads
    made = last.value.func if isinstance(last.value, ast.Call) else last.value
    if values and getattr(getattr(made, "value", made), "id", "") not in values:
        return False
    tree = function if is_sure else None
    whole = _of_expand(last.value, values, tree)
    return whole is not None and ast.unparse(whole) == first
