"""Statements in the forms that rewrites read: one name set by one expression.

`a, b = x[i], y[i]` is two statements, what a turn sets twice has two names, and what it
takes of the turn before it, as `sums[-1]` or `out[t - 1]`, has one that is carried from
turn to turn. So has what turns set as an attribute. What is taken by the places of a
mask is taken by the mask.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import NamedTuple, TypeGuard

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names, walk
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import VIEWS, ValueFlow
from warpbook_profiler.advice.rewriting.turns import (
    loaded,
    rewritten,
    values_of,
    whole_loops,
)

#: methods that may give the tensor itself, or its memory
_SAME_MEMORY = VIEWS.union("bool to view detach contiguous cpu cuda".split())


def plain(code: CellCode) -> tuple[CellCode, dict[str, str]]:
    """Write a cell in these forms; not known where it is in them already.

    Its loops are the same. Beside it is, by each new name, what stores such values.
    """
    edit, flow = SourceEdit(code), ValueFlow(code)
    is_changed = any(
        [_divided(edit, one) or _as_mask(edit, flow, one) for one in walk(code.tree)]
    )
    one = CellCode(edit.source()) if is_changed else code
    is_changed &= bool(one.source)
    for loop in whole_loops(one.tree):
        edit = SourceEdit(one)
        if _named(edit, loop) and (text := edit.source()):
            one, is_changed = CellCode(text), True
            break
    edit = SourceEdit(one)
    if any([_set_once(edit, loop) for loop in whole_loops(one.tree)]):
        text = edit.source()
        one, is_changed = (CellCode(text), True) if text else (one, is_changed)
    for loop in whole_loops(one.tree):
        edit = SourceEdit(one)
        carried = isinstance(loop, ast.For) and _carried(edit, loop, one.tree)
        if carried:
            return CellCode(edit.source() or None), carried
    return CellCode(one.source if is_changed else None), {}


def _divided(edit: SourceEdit, node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pass
        case _:
            return False
    are_names = all(isinstance(one, ast.Name) for one in names)
    if not are_names or len(names) != len(values) or stored_names(node) & loaded(node):
        return False
    if any(isinstance(one, ast.Starred) for one in values):
        return False
    *lines, last = (
        f"{ast.unparse(name)} = {ast.unparse(value)}"
        for name, value in zip(names, values, strict=True)
    )
    edit.before(node, "\n".join(lines))
    edit.replace(node, last)
    return True


def _as_mask(edit: SourceEdit, flow: ValueFlow, node: ast.AST) -> bool:
    """Write what takes elements by the places of a mask as if by the mask itself."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            mask = _mask_of(value)
            reads = flow.reads(name) if mask and flow.is_set_once(name) else []
            is_index = bool(reads) and all(_is_index(flow, one) for one in reads)
            is_index &= all(_is_as_then(flow, mask, node, one) for one in reads)
        case ast.Subscript(slice=value):
            mask, is_index = _mask_of(value), True
        case _:
            return False
    if mask is None or not is_index:
        return False
    edit.replace(value, ast.unparse(mask))
    return True


def _is_index(flow: ValueFlow, node: ast.Name) -> bool:
    above = flow.parent(node)
    return isinstance(above, ast.Subscript) and above.slice is node


def _is_as_then(
    flow: ValueFlow, mask: ast.expr | None, setting: ast.AST, read: ast.Name
) -> bool:
    """Tell whether a mask is where it is read what it was where its places are set."""
    match mask:
        case ast.Name(id=name):
            return flow.is_same(name, setting, read)
        case ast.Call(func=ast.Attribute(attr=name)):
            # it may be the same memory
            return name not in _SAME_MEMORY
    return not isinstance(mask, ast.Attribute | ast.Subscript)


def _mask_of(node: ast.expr) -> ast.expr | None:
    """Return the mask whose places an expression gives, if it has one axis."""
    match node:
        case ast.Subscript(value=ast.Call() as places, slice=ast.Constant(value=0)):
            # of a tensor it is the first place
            given = [one.arg for one in places.keywords]
            return _places(places) if _is_where(places) or given else None
        case (
            ast.Call(
                func=ast.Attribute(attr="squeeze", value=ast.Call() as places),
                args=[ast.Constant(value=1) | ast.UnaryOp(ast.USub(), ast.Constant(1))],
            )
            | ast.Call(
                func=ast.Attribute(attr="flatten" | "ravel", value=ast.Call() as places)
            )
        ):
            return None if places.keywords or _is_where(places) else _places(places)
        case ast.Call(keywords=[]) | ast.Call(keywords=[_]):
            return _places(node)
    return None


def _is_where(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "where"


def _places(node: ast.Call) -> ast.expr | None:
    """Return the mask that `where` or `nonzero` is given."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="where", value=ast.Name(id="torch")),
            args=[mask],
            keywords=[],
        ):
            return mask
        case ast.Call(func=ast.Attribute(attr="nonzero", value=mask), args=given) if (
            len(given) < 2
        ):
            return given[0] if given else mask
    return None


def _named(edit: SourceEdit, loop: ast.For | ast.While) -> bool:
    """Give attributes that turns set, or append to, names until the loop is over.

    That nothing else sees the object meanwhile is a guess.
    """
    nodes = [part for one in loop.body for part in walk(one)]
    whole = [node for node in nodes if isinstance(node, ast.Attribute)]
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    stored = stored_names(loop)
    parts: dict[str, list[ast.Attribute]] = {}
    for node in whole:
        if isinstance(node.value, ast.Name) and node.value.id not in stored:
            parts.setdefault(node.value.id, []).append(node)
    is_changed = False
    for name, own in parts.items():
        paths = {one.attr for one in own if isinstance(one.ctx, ast.Store)}
        others = [one for one in whole if one.attr in paths and one not in own]
        is_whole = sum(_is_name(one, name) for one in nodes) == len(own)
        if not paths or others or not is_whole or any(one in called for one in own):
            continue
        if any(isinstance(one, ast.Lambda | ast.FunctionDef) for one in nodes):
            continue
        filled = {
            one.value.attr
            for one in called
            if isinstance(one, ast.Attribute)
            and isinstance(one.value, ast.Attribute)
            and one.value in own
            and one.attr == "append"
        }
        names = {path: edit.free_name(path) for path in sorted(paths | filled)}
        lines = [f"{new} = {name}.{path}" for path, new in names.items()]
        edit.before(loop, "\n".join(lines))
        for one in own:
            if one.attr in names:
                edit.replace(one, names[one.attr])
        lines = [f"{name}.{path} = {names[path]}" for path in sorted(paths)]
        edit.after(loop, "\n".join(lines))
        is_changed = True
    return is_changed


def _set_once(edit: SourceEdit, loop: ast.For | ast.While) -> bool:
    """Give what each turn sets again another name until then."""
    is_changed = False
    statements: list[ast.expr | ast.stmt] = [*loop.body]
    statements[:0] = [loop.target] if isinstance(loop, ast.For) else []
    nodes = {one: [*walk(one)] for one in statements}
    sets = Counter(name for one in statements for name in _set_by(one))
    for name in (name for name, count in sets.items() if count > 1):
        own = {one: [it for it in nodes[one] if _is_name(it, name)] for one in nodes}
        elsewhere = any(
            _is_hidden(part, name) or (isinstance(part, ast.stmt) and part is not one)
            for one, parts in nodes.items()
            if own[one]
            for part in parts
        )
        if elsewhere:
            continue
        left, now = sets[name], ""
        for one in statements:
            is_set = name in _set_by(one)
            for node in own[one]:
                is_new = is_set and isinstance(node.ctx, ast.Store)
                if now and not is_new:
                    edit.replace(node, now)
            if is_set:
                left -= 1
                now = edit.free_name(name) if left else ""
                for node in own[one]:
                    if now and isinstance(node.ctx, ast.Store):
                        edit.replace(node, now)
        is_changed = True
    return is_changed


def _set_by(node: ast.expr | ast.stmt) -> set[str]:
    """Give the names that an assignment, or what a loop goes over, gives new values."""
    targets = [node] if isinstance(node, ast.expr) else getattr(node, "targets", [])
    if isinstance(node, ast.stmt) and not isinstance(node, ast.Assign):
        return set()
    parts = [
        part
        for one in targets
        for part in (one.elts if isinstance(one, ast.Tuple) else [one])
    ]
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _is_hidden(node: ast.AST, name: str) -> bool:
    """Tell whether a part of a statement has a name of its own, or reads it later."""
    return isinstance(node, ast.Lambda | ast.FunctionDef | ast.ClassDef) or (
        isinstance(node, ast.comprehension) and name in stored_names(node.target)
    )


class _Stored(NamedTuple):
    """The statement of a turn that stores its result."""

    statement: ast.stmt
    value: ast.expr
    #: what holds the results of all turns
    name: str
    #: the result of the turn before, and of the one before the first
    before: str
    begin: str
    #: what is before and behind the name of what is stored
    stores: tuple[str, str]


def _carried(edit: SourceEdit, loop: ast.For, tree: ast.Module) -> dict[str, str]:
    """Give what the turn before has stored a name, if turns take no other results."""
    every = [part for one in loop.body for part in walk(one)]
    for one in filter(None, (_stored(it, loop, tree) for it in loop.body)):
        mine = [
            part
            for part in every
            if isinstance(part, ast.expr) and ast.unparse(part) == one.before
        ]
        own = [part for part in every if _is_name(part, one.name)]
        kept = [part for part in walk(one.statement) if _is_name(part, one.name)]
        at = loop.body.index(one.statement)
        later = [part for it in loop.body[at + 1 :] for part in walk(it)]
        inside = {*walk(one.value)}
        of_value = [part for part in mine if part in inside]
        # the name in what stores, in what is taken, and nowhere else
        others = len(own) - len(mine) - (len(kept) - len(of_value))
        if not mine or others or any(_is_name(part, one.name) for part in later):
            continue
        name = edit.free_name(f"last_{one.name}")
        edit.before(loop, f"{name} = {one.begin}")

        def instead(
            node: ast.expr, before: str = one.before, name: str = name
        ) -> ast.expr | None:
            is_it = ast.unparse(node) == before
            return ast.Name(name, ast.Load()) if is_it else None

        for part in mine:
            if part not in inside:
                edit.replace(part, name)
        text = rewritten(ast.Expr(one.value), instead)
        edit.before(one.statement, f"{name} = {text}")
        edit.replace(one.statement, name.join(one.stores))
        return {name: one.name}
    return {}


def _stored(statement: ast.stmt, loop: ast.For, tree: ast.Module) -> _Stored | None:
    """Read a statement as one that stores the result of a turn; None if it is none."""
    match statement:
        case ast.Expr(
            ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=name)), args=[value]
            )
        ) if any(
            isinstance(one, ast.List) and one.elts for one in values_of(tree)[name]
        ):
            # it has a first one
            last, stores = f"{name}[-1]", (f"{name}.append(", ")")
            return _Stored(statement, value, name, last, last, stores)
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name), slice=place) as target],
            value=value,
        ):
            pass
        case ast.AugAssign(
            target=ast.Subscript(value=ast.Name(id=name), slice=place) as target,
            op=op,
            value=more,
        ):
            own = ast.Subscript(target.value, place, ast.Load())
            value = ast.BinOp(own, op, more)
        case _:
            return None
    before, begin = _earlier(place, loop), _earlier(place, loop, is_first=True)
    if not before or not begin:
        return None
    stores = f"{ast.unparse(target)} = ", ""
    before, begin = (f"{name}[{one}]" for one in (before, begin))
    return _Stored(statement, value, name, before, begin, stores)


def _earlier(place: ast.expr, loop: ast.For, is_first: bool = False) -> str:
    """Write the place of the turn before, or that of the one before the first."""
    match loop.target, loop.iter:
        case ast.Name(id=count), ast.Call(func=ast.Name(id="range"), args=[_]):
            start = 0
        case (
            ast.Name(id=count),
            ast.Call(
                func=ast.Name(id="range"), args=[ast.Constant(value=int() as start), _]
            ),
        ):
            pass
        case _:
            return ""
    *axes, last = place.elts if isinstance(place, ast.Tuple) else [place]
    match last:
        case ast.Name(id=name) if name == count:
            by = -1
        case ast.BinOp(
            left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int() as add)
        ) if name == count:
            by = add - 1
        case _:
            return ""
    if any(ast.unparse(one) != ":" for one in axes) or start + by < 0:
        return ""
    at = f"{count} {'-' if by < 0 else '+'} {abs(by)}" if by else count
    return ", ".join([*(":" for _ in axes), str(start + by) if is_first else at])


def _is_name(node: ast.AST, name: str) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and node.id == name
