"""Names that an edit of a cell binds, beside those that the person has."""

from __future__ import annotations

import ast
import re
from collections.abc import Set
from symtable import symtable

from warpbook_profiler.advice.code.cell_code import CellCode, names_in


def beside(code: str, source: str, known: Set[str]) -> str:
    """Write an edited cell so that it binds no name of other cells.

    Args:
        code: the edited cell.
        source: the cell, whose names stay.
        known: names of the person's.
    """
    names = names_in(CellCode(source).tree)
    taken = (_own(code) - names) & known
    return _renamed(code, taken, {*known, *names}) if taken else code


def _own(code: str) -> set[str]:
    """Give the names that code sets outside of its functions before it reads them."""
    source = ast.unparse(CellCode(code).tree)
    table = symtable(source, "cell", "exec")
    read, first_set = dict[str, int](), dict[str, int]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Load(), lineno=line):
                read[name] = min(line, read.get(name, line))
            case (
                ast.Name(id=name, lineno=line) | ast.FunctionDef(name=name, lineno=line)
            ):
                first_set[name] = min(line, first_set.get(name, line))
    names = (one.get_name() for one in table.get_symbols() if one.is_assigned())
    return {
        name
        for name in names
        if name in first_set and first_set[name] < read.get(name, first_set[name] + 1)
    }


def _renamed(code: str, taken: set[str], known: set[str]) -> str:
    """Give code with other names for these; one in quotes is made to be there."""
    for name in sorted(taken):
        other = f"{name}_"
        while other in known or re.search(rf"\b{other}\b", code):
            other += "_"
        lines = code.encode().splitlines(keepends=True)
        old, new = name.encode(), other.encode()
        for line, column in sorted(_places(code, name), reverse=True):
            text = lines[line]
            if not text.startswith(old, column):
                # within an f-string, whose parts have no places of their own
                break
            lines[line] = text[:column] + new + text[column + len(old) :]
        else:
            code = b"".join(lines).decode()
    return code


def _places(code: str, name: str) -> set[tuple[int, int]]:
    """Give line and byte of each use of a name as a variable, counted from 0.

    Returns:
        Nothing where text or the keyword of a call has the name, too.
    """
    found = set[tuple[int, int]]()
    lines = code.encode().splitlines()
    for node in ast.walk(CellCode(code).tree):
        match node:
            case ast.Constant(value=str(text)) if text == name:
                return set()
            case ast.keyword(arg=str(keyword)) if keyword == name:
                return set()
            case ast.Name(id=used) | ast.arg(arg=used) if used == name:
                found.add((node.lineno - 1, node.col_offset))
            case ast.FunctionDef(name=used) if used == name:
                line = node.lineno - 1
                found.add((line, lines[line].index(name.encode(), node.col_offset + 3)))
    return found
