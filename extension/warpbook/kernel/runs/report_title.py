"""What a report is called: the line of its code that tells most."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from warpbook.kernel.runs.cell import MOST_TITLE, cell_title

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TELLS_NOTHING = (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)


def report_title(lines: Sequence[str], time_of: Mapping[int, float] = {}) -> str:
    """Give the statement that tells most, in one line.

    Imports, comments, definitions, and the heads of blocks tell least; a statement that
    calls something tells more than one that does not. Among equals it is the one whose
    line took most, else the first.

    Args:
        lines: of the cell, with its magic line if it has one.
        time_of: how long each line took, by its number from 1, where that is known.
    """
    magics = ("%", "!")
    code = "\n".join("pass" if line.startswith(magics) else line for line in lines)
    try:
        statements = list(_statements(ast.parse(code).body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = []
    if not statements:
        return cell_title([line for line in lines if not line.startswith(magics)])
    best = max(
        statements,
        key=lambda statement: (_calls(statement), time_of.get(statement.lineno, 0.0)),
    )
    source = ast.get_source_segment(code, best) or ""
    return " ".join(line.strip() for line in source.splitlines())[:MOST_TITLE]


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Go through the statements that a cell itself runs, without heads of blocks."""
    for statement in body:
        if isinstance(statement, (*_DEFINITIONS, *_TELLS_NOTHING)):
            continue
        blocks = [
            block
            for field in ("body", "handlers", "orelse", "finalbody", "cases")
            for block in [getattr(statement, field, None)]
            if block
        ]
        for block in blocks:
            for part in block:
                yield from _statements(
                    [part] if isinstance(part, ast.stmt) else part.body
                )
        if not blocks and not _is_text(statement):
            yield statement


def _is_text(statement: ast.stmt) -> bool:
    """Whether it is a string that stands for itself, as a comment does."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _calls(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(statement))
