"""A cell's source with some statements and expressions changed; all else stays.

Positions of the syntax tree say where text is replaced, so comments, magics and every
other line stay byte for byte. What can't be changed for sure gives no source.
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    Call,
    CellCode,
    blocks,
    bound_names,
    leaves,
    names_in,
    only_deleted_names,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.source_text import SourceText

_STEP = "    "
_BUILTINS = frozenset(dir(builtins))
#: what may stand in another expression as it is
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.List)
_COMPOUND = (
    *(ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Match),
)
#: lines around a changed one
_CONTEXT = 2


class _Splice(NamedTuple):
    start: int
    end: int
    text: bytes


class SourceEdit(SourceText):
    """Changes of one source, gathered and then made at once by `source`."""

    def __init__(self, code: CellCode) -> None:
        """Begin without a change."""
        super().__init__(code)
        self._splices: list[_Splice] = []
        self._deleted: list[ast.stmt] = []
        self._imports: dict[str, None] = {}
        self._elsewhere = set[str]()

    @cached_property
    def _known(self) -> set[str]:
        return names_in(self._code.tree)

    def text(self, node: ast.expr) -> str:
        """Return an expression's own text, as it may stand alone in a line of code."""
        text = self._bytes[self._start(node) : self._end(node)].decode()
        return f"({text})" if "\n" in text or "\r" in text else text

    def operand(self, node: ast.expr) -> str:
        """Return an expression's text as it may stand before a dot."""
        text = self.text(node)
        return text if isinstance(node, _ATOMS) else f"({text})"

    @property
    def torch(self) -> str:
        """Return the name of torch, as `module` does."""
        return self.module("torch")

    def module(self, name: str) -> str:
        """Return a module's name, which is imported if the cell does not have it."""
        self._imports[name] = None
        return name

    def free_name(self, name: str) -> str:
        """Return a name that the cell does not use, which the edit binds."""
        while name in self._known:
            name += "_"
        self._known.add(name)
        return name

    def know(self, names: Iterable[str]) -> None:
        """Have the edit read names of other cells, which the cell does not."""
        self._elsewhere.update(names)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        """Write another expression or statement in a node's place."""
        start = self._start(node)
        is_elif = isinstance(node, ast.If) and self._bytes.startswith(b"elif", start)
        self._is_sure &= node not in self._in_strings and not is_elif
        self._splice(start, self._end(node), text)

    def arguments(self, call: ast.Call, given: Mapping[str, str]) -> None:
        """Give a call these arguments by name, in place of those that it has."""
        left = dict(given)
        for keyword in call.keywords:
            if keyword.arg in left:
                self.replace(keyword.value, left.pop(keyword.arg))
        ends = [*call.args, *(keyword.value for keyword in call.keywords)]
        new = ", ".join(f"{key}={value}" for key, value in left.items())
        if new and not ends:
            self._splice(self._end(call) - 1, self._end(call) - 1, new)
        elif new:
            end = max(map(self._end, ends))
            tail = self._bytes[end : self._end(call) - 1]
            # the last one may stand in parentheses
            skipped = 0 if b"#" in tail else tail.rfind(b")") + 1
            # a comma in the end goes
            rest = tail[skipped:] if tail[skipped:].strip(b" ") == b"," else b""
            end += skipped
            self._splice(end, end + len(rest), f", {new}")

    def before(self, statement: ast.stmt, text: str) -> None:
        """Write lines before a statement, in its block."""
        for first in getattr(statement, "decorator_list", [])[:1]:
            # it begins with them, each in a line of its own
            line, at = self._line_start(self._start(first)), self._start(first)
            blank, mark, rest = self._bytes[line:at].decode().partition("@")
            self._is_sure &= mark == "@" and not (blank + rest).strip()
            self._splice(line, line, self._indented(blank, text.splitlines()))
            return
        start, indent = self._start(statement), self._indent(statement)
        if indent is not None:
            lines = self._indented(indent, text.splitlines())
            self._splice(self._line_start(start), self._line_start(start), lines)
        else:
            self._splice(start, start, f"{self._in_one_line(text)}; ")

    def after(self, statement: ast.stmt, text: str) -> None:
        """Write lines after a statement, in its block."""
        end = self._end(statement)
        if self._indent(statement) is None or self._rest(end).startswith(b";"):
            if not isinstance(statement, _COMPOUND):
                self._splice(end, end, f"; {self._in_one_line(text)}")
                return
            self._is_sure &= self._indent(statement) is not None
        line_end = self._line_end(end)
        lines = self._indented(self._indent(statement), text.splitlines())
        if line_end == len(self._bytes) and not self._bytes.endswith((b"\n", b"\r")):
            newline = self._newline.decode()
            lines = newline + lines.removesuffix(newline)
        self._splice(line_end, line_end, lines)

    def at_start(self, text: str) -> None:
        """Write lines before what the cell does first; its imports come before them."""
        first = self._first
        if first is None:
            self._is_sure = False
        else:
            self.before(first, text)

    def delete(self, statement: ast.stmt) -> None:
        """Take a statement away; what follows it in its line stays."""
        self._deleted.append(statement)

    def delete_calls(self, calls: Sequence[Call]) -> None:
        """Take calls away, each of which is a statement, or the edit is not sure."""
        whole = {
            node.value: node
            for node in walk(self._code.tree)
            if isinstance(node, ast.Expr)
        }
        self._is_sure &= all(call.node in whole for call in calls)
        self._deleted += [whole[one.node] for one in calls if one.node in whole]

    def under(self, statements: Sequence[ast.stmt], manager: str) -> None:
        """Put statements of one block under a `with`."""
        self._put(statements, f"with {manager}:")

    def finally_(self, statements: Sequence[ast.stmt], text: str) -> None:
        """Have lines run after statements of one block, even if these raise."""
        self._put(statements, "try:")
        lines = text.splitlines()
        self.after(
            statements[-1], "\n".join(["finally:", *(_STEP + one for one in lines)])
        )

    def _put(self, statements: Sequence[ast.stmt], head: str) -> None:
        """Put statements of one block under a line."""
        first, last = statements[0], statements[-1]
        indent, end = self._indent(first), self._end(last)
        # what a cell ends with is displayed, unless it is in a block
        is_shown = last is self._code.tree.body[-1] and isinstance(last, ast.Expr)
        is_whole = indent is not None and not self._rest(end).startswith(b";")
        if is_shown or not is_whole:
            self._is_sure = False
            return
        start = self._line_start(self._start(first))
        self._splice(start, start, self._indented(indent, [head]) + _STEP)
        for line in self._own_lines(first, last)[1:]:
            self._splice(line, line, _STEP)

    def unwrap(self, statement: ast.With, item: ast.withitem) -> None:
        """Take one manager of a `with` away, and the `with` if it has no other."""
        start, inner = self._start(statement), self._start(statement.body[0])
        place = statement.items.index(item)
        self._is_sure &= item.optional_vars is None
        if len(statement.items) > 1:
            # with the comma before it, or after the first
            near = statement.items[place - 1 if place else 1]
            begin, end = self._start(item.context_expr), self._end(item.context_expr)
            if place:
                begin = self._end(near.optional_vars or near.context_expr)
            else:
                end = self._start(near.context_expr)
            self._splice(begin, end, "")
            return
        self._is_sure &= b"#" not in self._bytes[start:inner]
        indent, own = self._indent(statement), self._indent(statement.body[0])
        if own is None:
            self._splice(start, inner, "")
            return
        self._splice(start, inner, "")
        depth = len(own) - len(indent or "")
        for line in self._own_lines(statement.body[0], statement.body[-1])[1:]:
            text = self._bytes[line : self._line_end(line)]
            blank = len(text) - len(text.lstrip(b" \t"))
            self._splice(line, line + min(depth, blank), "")

    @property
    def working(self) -> list[ast.stmt]:
        """Return what the cell does, from its first work to what it shows at last."""
        body, first = self._code.tree.body, self._first
        working = body[body.index(first) :] if first is not None else []
        return working[:-1] if isinstance(body[-1], ast.Expr) else working

    @property
    def computing(self) -> list[ast.stmt]:
        """Return what the cell does from its first call or product to its last."""
        statements = self.working
        while statements and not _computes(statements[0]):
            del statements[0]
        while statements and not _computes(statements[-1]):
            del statements[-1]
        return statements

    def source(self) -> str:
        """Return the whole source after the changes; empty where it is not sure."""
        self._take_deleted()
        missing = [name for name in self._imports if not self._has(name)]
        if missing and self._splices:
            self.at_start(f"import {', '.join(missing)}")
            # an import comes before what uses it
            self._splices.insert(0, self._splices.pop())
        if not self._is_sure or not self._splices:
            return ""
        changed = self._changed()
        if changed and (left := self._left_to_delete(CellCode(changed))):
            self._keep_from_deletion(left)
            changed = self._changed()
        return changed if changed and self._is_good(changed) else ""

    def _changed(self) -> str:
        parts, place = [], 0
        for splice in sorted(self._splices, key=lambda one: (one.start, one.end)):
            if splice.start < place:
                return ""
            parts += [self._bytes[place : splice.start], splice.text]
            place = splice.end
        return b"".join([*parts, self._bytes[place:]]).decode()

    def _left_to_delete(self, code: CellCode) -> set[str]:
        """Return the names that `del` names and nothing sets any more."""
        return only_deleted_names(code.tree) - only_deleted_names(self._code.tree)

    def _keep_from_deletion(self, left: set[str]) -> None:
        """Delete names no more where the same block has set them before the edit."""
        for block in blocks(self._code.tree):
            for at, statement in enumerate(block.statements):
                before = ast.Module(block.statements[:at], [])
                if not isinstance(statement, ast.Delete) or leaves(before):
                    continue
                targets, gone = statement.targets, left & stored_names(before)
                kept = [one for one in map(ast.unparse, targets) if one not in gone]
                if kept and len(kept) < len(targets):
                    self.replace(statement, f"del {', '.join(kept)}")
                elif not kept and statement not in self._deleted:
                    self._take(statement, set())

    def _is_good(self, changed: str) -> bool:
        """Tell whether it parses, shows what it showed, and reads only known names."""
        code = CellCode(changed)
        if not code.is_known or changed == self._code.source:
            return False
        last, after = self._code.tree.body[-1], code.tree.body
        shows = bool(after) and isinstance(after[-1], ast.Expr)
        if not after or (last in self._deleted and shows):
            return False
        if isinstance(last, ast.Expr) and last not in self._deleted and not shows:
            return False
        read = {
            node.id
            for node in walk(code.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        if self._code.order.own & code.order.read_first or self._left_to_delete(code):
            return False
        known = names_in(self._code.tree) | self._elsewhere | _BUILTINS
        return read <= known | bound_names(code.tree)

    def _take_deleted(self) -> None:
        deleted = set(self._deleted)
        for block in blocks(self._code.tree):
            gone = [one for one in block.statements if one in deleted]
            begun: set[int] = set()
            for number, statement in enumerate(gone):
                if number or len(gone) < len(block.statements):
                    self._take(statement, begun)
                else:
                    self.replace(statement, "pass")

    def _take(self, statement: ast.stmt, begun: set[int]) -> None:
        """Take a statement out; lines whose first statements are out are in `begun`."""
        start, end = self._start(statement), self._end(statement)
        line, rest = self._line_start(start), self._rest(end)
        before = self._bytes[line:start].rstrip(b" \t")
        if before.endswith(b";") and line not in begun:
            self._splice(line + len(before) - 1, end, "")
        elif rest.startswith(b";"):
            begun.add(line)
            after = self._bytes.index(b";", end) + 1
            left = self._bytes[after : self._line_end(after)]
            blank = len(left) - len(left.lstrip(b" \t"))
            self._splice(start, after + blank, "")
        elif self._indent(statement) is None and line not in begun:
            self.replace(statement, "pass")
        elif rest.startswith(b"#"):
            self._splice(start, self._bytes.index(b"#", end), "")
        else:
            self._splice(line if line not in begun else start, self._line_end(end), "")

    @property
    def _first(self) -> ast.stmt | None:
        for statement in self._code.tree.body:
            is_import = isinstance(statement, ast.Import | ast.ImportFrom)
            start = self._start(statement)
            is_magic = self._bytes[start : start + 1] in (b"%", b"!")
            is_words = isinstance(statement, ast.Expr) and isinstance(
                statement.value, ast.Constant
            )
            if not (is_import or is_magic or is_words):
                return statement
        return None

    def _has(self, module: str) -> bool:
        """Tell whether a module is there where the cell begins to work."""
        body, first = self._code.tree.body, self._first
        leading = ast.Module(body[: body.index(first)] if first else body, [])
        elsewhere = self._known - bound_names(self._code.tree)
        return module in bound_names(leading) | elsewhere

    def _splice(self, start: int, end: int, text: str) -> None:
        self._splices.append(_Splice(start, end, text.encode()))

    def _in_one_line(self, text: str) -> str:
        """Write simple statements one after the other."""
        lines = text.splitlines()
        try:
            tree = ast.parse(text)
        except SyntaxError:
            self._is_sure = False
        else:
            is_simple = not any(isinstance(node, _COMPOUND) for node in tree.body)
            self._is_sure &= is_simple and len(tree.body) == len(lines)
        return "; ".join(lines)

    def _indented(self, indent: str | None, lines: Sequence[str]) -> str:
        newline = self._newline.decode()
        return "".join(f"{indent or ''}{line}".rstrip() + newline for line in lines)

    def _indent(self, statement: ast.stmt) -> str | None:
        """Return what is before a statement in its line; None if that is code."""
        start = self._start(statement)
        before = self._bytes[self._line_start(start) : start]
        self._is_sure &= not self._bytes.startswith(b"elif", start)
        self._is_sure &= not getattr(statement, "decorator_list", [])
        return before.decode() if not before.strip() else None


def _computes(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(isinstance(one, ast.Call | ast.MatMult) for one in walk(statement))


def changed_lines(before: str | None, after: str) -> str:
    """Return the lines that differ as a unified diff without its heading."""
    if not after or before is None:
        return ""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), n=_CONTEXT, lineterm=""
    )
    return "\n".join(list(lines)[2:])
