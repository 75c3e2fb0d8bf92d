"""Where lines, statements and expressions stand in a cell's source, in bytes."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from warpbook_profiler.advice.code.cell_code import CellCode, walk

#: a longer source is not edited
MOST_CHARACTERS, _MOST_LINES = 20_000, 1_000
_NEWLINE = re.compile(rb"\r\n|\r|\n")


class SourceText:
    """One source; positions are numbers of its bytes."""

    def __init__(self, code: CellCode) -> None:
        """Find the lines; a source that is too long is not sure."""
        self._code = code
        source = code.source if code.is_known else ""
        self._is_sure = bool(source) and len(source) <= MOST_CHARACTERS
        self._bytes = source.encode()
        ends = [found.end() for found in _NEWLINE.finditer(self._bytes)]
        self._lines = [0, *ends]
        self._is_sure &= len(self._lines) <= _MOST_LINES
        found = _NEWLINE.search(self._bytes)
        self._newline = found[0] if found else b"\n"

    @cached_property
    def _in_strings(self) -> set[ast.AST]:
        return {
            part
            for node in walk(self._code.tree)
            if isinstance(node, ast.JoinedStr)
            for part in walk(node)
            if part is not node
        }

    def _own_lines(self, first: ast.stmt, last: ast.stmt) -> list[int]:
        """Return where the lines of statements begin, those within strings apart."""
        inside = {
            number
            for node in walk(self._code.tree)
            if isinstance(node, ast.Constant | ast.JoinedStr)
            and node not in self._in_strings
            for number in range(node.lineno + 1, (node.end_lineno or 0) + 1)
        }
        until = last.end_lineno or last.lineno
        return [
            self._lines[number - 1]
            for number in range(first.lineno, until + 1)
            if number not in inside
            and not self._bytes.startswith((b"\n", b"\r"), self._lines[number - 1])
        ]

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        line, column = node.end_lineno, node.end_col_offset
        return self._lines[(line or 1) - 1] + (column or 0)

    def _line_start(self, place: int) -> int:
        return max(self._bytes.rfind(mark, 0, place) for mark in (b"\n", b"\r")) + 1

    def _line_end(self, place: int) -> int:
        """Return where the next line begins."""
        found = _NEWLINE.search(self._bytes, place)
        return found.end() if found else len(self._bytes)

    def _rest(self, place: int) -> bytes:
        return self._bytes[place : self._line_end(place)].strip()
