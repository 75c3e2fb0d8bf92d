"""What an edited cell needs to run once, apart from the cell.

A function that is compiled where the cell defines it is another one in each run, and is
compiled anew each time that a person executes the cell.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.source_edit import bound_names, names_in

#: the last name of what gives a compiled function or module
_COMPILERS = ("compile", "jit", "fuse")


class Sources(NamedTuple):
    """A cell in two parts."""

    #: may be empty
    once: str
    cell: str

    @property
    def whole(self) -> str:
        """Give both as one source."""
        return f"{self.once}\n{self.cell}" if self.once else self.cell


def divided(code: str, original: str) -> Sources:
    """Take out of an edited source what it compiles.

    Args:
        code: of the edited cell.
        original: the source before any edit, whose names stay where they are.
    """
    tree, before = CellCode(code).tree, CellCode(original).tree
    known, bound = names_in(before), bound_names(before)
    compiled = [one for one in tree.body if _compiles(one, known, bound)]
    if not compiled:
        return Sources("", code)
    imports = [
        one
        for one in tree.body
        if isinstance(one, ast.Import) and not bound_names(one) & known
    ]
    lines = code.splitlines(keepends=True)
    taken = {
        number
        for one in (*imports, *compiled)
        for number in range(_first_line(one), (one.end_lineno or one.lineno) + 1)
    }
    shared = {one.lineno for one in tree.body if one not in (*imports, *compiled)}
    if taken & shared:
        return Sources("", code)
    once = [line for at, line in enumerate(lines, 1) if at in taken]
    cell = [line for at, line in enumerate(lines, 1) if at not in taken]
    return Sources("".join(once), "".join(cell))


def _compiles(statement: ast.stmt, known: set[str], bound: set[str]) -> bool:
    match statement:
        case ast.FunctionDef(name=name, decorator_list=[decorator]):
            return name not in known and _is_compiler(decorator)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            reads = names_in(call)
            return name not in known and _is_compiler(call) and not reads & bound
    return False


def _is_compiler(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return isinstance(function, ast.Attribute) and function.attr in _COMPILERS


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min((node.lineno for node in decorators), default=statement.lineno)
