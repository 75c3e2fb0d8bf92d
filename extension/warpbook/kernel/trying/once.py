"""What an edited cell needs to run once, apart from the cell.

A module that an edit compiles or folds would be made anew each time that a person
executes the cell, which takes longer than many a cell; so would pinned memory.
"""

from __future__ import annotations

import ast
import io
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names, names_in

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
    known = names_in(before)
    imported = {ast.dump(one) for one in before.body if isinstance(one, ast.Import)}
    imports = [
        one
        for one in tree.body
        if isinstance(one, ast.Import) and ast.dump(one) not in imported
    ]
    rest = [one for one in tree.body if one not in imports]
    compiled = [one for one in rest if _compiles(one, rest, known)]
    compiled += _prepared(rest, known)
    if not compiled:
        return Sources("", code)
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


def _compiles(statement: ast.stmt, cell: list[ast.stmt], known: set[str]) -> bool:
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(attr=function)) as call,
        ) if name not in known and function in _COMPILERS:
            return not names_in(call) & _made(cell, statement)
    return False


def _prepared(cell: list[ast.stmt], known: set[str]) -> list[ast.stmt]:
    """Return the edit's own functions that make something of the person's once.

    As in `x = pinned(x)`, and in `net_folded = folded(net)`.
    """
    functions = {
        one.name: one
        for one in cell
        if isinstance(one, ast.FunctionDef) and one.name not in known
    }
    found: list[ast.stmt] = []
    for statement in cell:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id=function), args=[ast.Name(id=given)]),
            ) if function in functions:
                both = [functions[function], statement]
                is_new = name == given or name not in known
                read = names_in(both[0]) - bound_names(both[0]) | {given}
                if is_new and not read & _made(cell, *both):
                    found += both
    return list(dict.fromkeys(found))


def _made(cell: list[ast.stmt], *but: ast.stmt) -> set[str]:
    """Return what a cell makes in all but some of its statements."""
    return bound_names(ast.Module([one for one in cell if one not in but], []))
