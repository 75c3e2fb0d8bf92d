"""What is known of one run of a cell from the shell that ran it, and its title."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

#: characters
MOST_TITLE = 200


def cell_title(lines: list[str]) -> str:
    """Give the first line that says anything."""
    first = next((line.strip() for line in lines if line.strip()), "")
    return first[:MOST_TITLE]


def prompt_number(shell: Any) -> int | None:
    """Give the number of the cell that runs, as its prompt shows it.

    IPython 9 counts on before a cell runs and IPython 8 after it; its display hook
    knows which.
    """
    number: int | None = getattr(
        getattr(shell, "displayhook", None), "prompt_count", None
    )
    return number


def cell_status(result: Any) -> Literal["ok", "error", "interrupted"]:
    """Say how it ended; after an interrupt there may be no result at all."""
    if result is None or isinstance(_problem(result), KeyboardInterrupt):
        return "interrupted"
    return "ok" if _problem(result) is None else "error"


def did_nothing(result: Any) -> bool:
    """Tell whether it did not compile.

    IPython compiles each statement when its turn comes, so an interrupt there comes
    "before" the cell, too.
    """
    if result is None or result.error_before_exec is None:
        return False
    return not isinstance(result.error_before_exec, KeyboardInterrupt)


def _problem(result: Any) -> BaseException | None:
    """Give what ended it, if anything did."""
    error: BaseException | None = result.error_in_exec or result.error_before_exec
    return error


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
