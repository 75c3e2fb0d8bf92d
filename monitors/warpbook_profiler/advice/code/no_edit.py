"""Why a change has no edit, where the cell's source shows it."""

from __future__ import annotations

import ast
import builtins

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.model.change import Change

_MOST_NAME = 40
_LOOPS = ast.For, ast.While, ast.ListComp, ast.GeneratorExp


def why_no_edit(change: Change, code: CellCode) -> str:
    """Say it as a clause; empty where no single thing in the source is the reason."""
    if not code.is_known:
        return "the cell's source can't be read"
    if change.line is None:
        return "no line of the cell is known to do it"
    around = (
        node
        for node in ast.walk(code.tree)
        if isinstance(node, _LOOPS)
        and node.lineno <= change.line <= (node.end_lineno or node.lineno)
    )
    loop = min(around, key=lambda node: node.lineno, default=None)
    if loop is None:
        return ""
    unknown = _called(loop) - bound_names(code.tree) - set(dir(builtins))
    if not unknown:
        return ""
    name = min(unknown)[:_MOST_NAME]
    return (
        f"the loop on line {loop.lineno} calls {name}, which the cell does not define"
    )


def _called(tree: ast.AST) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
