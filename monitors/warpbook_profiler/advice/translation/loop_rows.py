"""The rows of tensors that each turn of a loop takes, for a function of one row."""

from __future__ import annotations

import ast
import copy

from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import UnsureError


class LoopRows:
    """`x[i]` and `x[:, i]` of a loop over `i`, in the order in which they are met."""

    def __init__(
        self, edit: SourceEdit, flow: ValueFlow, index: str, end: str, stored: set[str]
    ) -> None:
        """Find none yet.

        Args:
            edit: gives names that are free.
            flow: of the same cell.
            index: the loop's name.
            end: how many turns it has, as text.
            stored: names that the loop sets or fills.
        """
        self._edit, self._flow = edit, flow
        self._index, self._end, self._stored = index, end, stored
        #: by the text of rows, "x[:, i]": all of them, their axis, a name for one
        self._found: dict[str, tuple[str, int, str]] = {}

    @property
    def wholes(self) -> list[str]:
        """Return the text of the tensors, cut to as many rows as there are turns."""
        return [whole for whole, _, _ in self._found.values()]

    @property
    def axes(self) -> tuple[int, ...]:
        """Return along which axis the rows of each tensor are."""
        return tuple(axis for _, axis, _ in self._found.values())

    @property
    def names(self) -> list[str]:
        """Return the names of one row of each tensor."""
        return [name for _, _, name in self._found.values()]

    def of_row(self, node: ast.AST) -> ast.AST:
        """Write code of a turn with names of rows in place of `x[i]`.

        Raises:
            UnsureError: it uses the loop's name otherwise.
        """
        rows = self

        class Rows(ast.NodeTransformer):
            def visit_Subscript(self, part: ast.Subscript) -> ast.expr:
                name = rows._row(part)
                if name:
                    return ast.Name(name, ast.Load())
                self.generic_visit(part)
                return part

            def visit_Name(self, part: ast.Name) -> ast.Name:
                if part.id == rows._index:
                    raise UnsureError
                return part

        new: ast.AST = Rows().visit(copy.deepcopy(node))
        return new

    def _row(self, node: ast.Subscript) -> str:
        """Return the name of a row; empty where code does not take one."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        texts = [ast.unparse(part) for part in parts]
        if texts.count(self._index) != 1 or set(texts) - {self._index, ":"}:
            return ""
        if not isinstance(node.value, ast.Name) or node.value.id in self._stored:
            raise UnsureError
        if isinstance(self._flow.value(node.value), ast.List | ast.ListComp):
            raise UnsureError
        name, axis = node.value.id, texts.index(self._index)
        text = ast.unparse(node)
        if text not in self._found:
            is_whole = self._end in (
                f"len({name})" * (not axis),
                f"{name}.shape[{axis}]",
            )
            whole = name if is_whole else f"{name}[{':, ' * axis}:{self._end}]"
            self._found[text] = whole, axis, self._edit.free_name(f"{name}_row")
        return self._found[text][2]
