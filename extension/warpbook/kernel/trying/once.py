"""What an edited cell needs to run once, apart from the cell.

A module that an edit compiles or folds would be made anew each time that a person
executes the cell, which takes longer than many a cell; so would pinned memory.
"""

from __future__ import annotations

import ast
import io
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import bound_names, names_in

#: the last name of what gives a compiled or folded module
_COMPILERS = ("compile", "jit", "fuse")


class Sources(NamedTuple):
    """A cell in two parts."""

    #: may be empty
    once: str
    cell: str


def divided(code: str, original: str) -> Sources:
    """Take out of an edited source what it makes of the person's modules and tensors.

    Args:
        code: of the edited cell.
        original: the source before any edit, whose names stay where they are.
    """
    tree, before = CellCode(code).tree, CellCode(original).tree
    known, bound = names_in(before), bound_names(before)
    compiled = [one for one in tree.body if _compiles(one, known, bound)]
    compiled += _prepared(tree, known, bound)
    if not compiled:
        return Sources("", code)
    imported = {ast.dump(one) for one in before.body if isinstance(one, ast.Import)}
    imports = [
        one
        for one in tree.body
        if isinstance(one, ast.Import) and ast.dump(one) not in imported
    ]
    # str.splitlines ends lines where Python does not
    lines = list(io.StringIO(code, newline=""))
    taken = {
        number
        for one in (*imports, *compiled)
        for number in range(one.lineno, (one.end_lineno or one.lineno) + 1)
    }
    shared = {one.lineno for one in tree.body if one not in (*imports, *compiled)}
    if taken & shared:
        return Sources("", code)
    once = [line for at, line in enumerate(lines, 1) if at in taken]
    cell = [line for at, line in enumerate(lines, 1) if at not in taken]
    return Sources("".join(once), "".join(cell))


def _compiles(statement: ast.stmt, known: set[str], bound: set[str]) -> bool:
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(attr=function)) as call,
        ):
            is_new = name not in known and not names_in(call) & bound
            return is_new and function in _COMPILERS
    return False


def _prepared(tree: ast.Module, known: set[str], bound: set[str]) -> list[ast.stmt]:
    """Return the edit's own functions that make something of the person's once.

    As in `x = pinned(x)`, and in `net_folded = folded(net)`.
    """
    functions = {
        one.name: one
        for one in tree.body
        if isinstance(one, ast.FunctionDef) and one.name not in known
    }
    found: list[ast.stmt] = []
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id=function), args=[ast.Name(id=given)]),
            ) if (
                given not in bound
                and function in functions
                and (name == given or name not in known)
            ):
                found += [functions[function], statement]
    return list(dict.fromkeys(found))
