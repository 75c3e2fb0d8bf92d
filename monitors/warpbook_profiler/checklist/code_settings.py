"""Settings that a source makes and a trace does not show."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from warpbook_profiler.advice.code.cell_code import CellCode


class CodeSettings:
    """What is asked of a source; one that is not known answers nothing."""

    def __init__(self, source: str | None) -> None:
        """Parse it; nothing of it is run."""
        self._code = CellCode(source)

    @property
    def is_known(self) -> bool:
        """Tell whether there is anything to ask."""
        return self._code.is_known

    def mention(self, *names: str) -> int | None:
        """Give the first line that uses one of these names, of a module or bare."""
        return min(
            (line for name, line in self._mentions if name in names), default=None
        )

    def called(self, *names: str) -> int | None:
        """Give the first line that calls one of these, of a module or bare."""
        return self._code.first_line(*names)

    def imports_from(self, module: str) -> bool:
        """Tell whether names are imported from a module."""
        return any(
            isinstance(node, ast.ImportFrom) and node.module == module
            for node in ast.walk(self._code.tree)
        )

    def assigned(self, target: str) -> tuple[object, int] | None:
        """Give the constant that is last assigned to a name, and its line.

        Args:
            target: how the name ends, "cudnn.benchmark".
        """
        constants = [
            (constant.value, constant.line)
            for constant in self._code.constants()
            if f".{constant.target}".endswith(f".{target}")
        ]
        return max(constants, key=lambda constant: constant[1], default=None)

    def keyword(self, keyword: str, *calls: str) -> tuple[object, int] | None:
        """Give the constant that is passed as a keyword, and its line.

        Args:
            keyword: its name, "pin_memory".
            calls: last names of what is called; any call if there are none.
        """
        for node in self._calls:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if isinstance(node.func, ast.Name):
                name = node.func.id
            if calls and name not in calls:
                continue
            for argument in node.keywords:
                if argument.arg == keyword and isinstance(argument.value, ast.Constant):
                    return argument.value.value, node.lineno
        return None

    @cached_property
    def _calls(self) -> list[ast.Call]:
        nodes = ast.walk(self._code.tree)
        return [node for node in nodes if isinstance(node, ast.Call)]

    @cached_property
    def _mentions(self) -> list[tuple[str, int]]:
        return list(_mentions(self._code.tree))


def _mentions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Give the names that are used; an import alone uses nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno
