"""Functions and methods of other cells, as code that an edit of a cell may change.

A copy of each stands before the cell, which calls the copies of functions. Those that
an edit leaves as they are go again. A method that it changes is its class's while the
cell runs, and no longer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    bound_names,
    names_in,
    walk,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.source_text import MOST_CHARACTERS
from warpbook_profiler.advice.rewriting.inlined_calls import (
    inlined,
    own_functions,
    with_methods,
)

#: of functions that call others
_MOST_ROUNDS = 4
_PATCH = '{mock}.patch.object({kind}, "{method}", {name})'


def copied_code(source: str, called: Mapping[str, str]) -> CalledCode:
    """Give a cell with copies of what it calls; the last two are kept."""
    return _copied(source, tuple(called.items()))


@lru_cache(maxsize=2)
def _copied(source: str, called: tuple[tuple[str, str], ...]) -> CalledCode:
    return CalledCode(CellCode(source), dict(called))


class CalledCode:
    """A cell with copies of what it calls."""

    def __init__(self, code: CellCode, called: Mapping[str, str]) -> None:
        """Put copies before a cell.

        Args:
            code: the cell.
            called: sources of functions by their name, of methods by "Class.method";
                an object's has the classes that it is of.
        """
        kinds = {name: _kinds(source) for name, source in called.items()}
        #: classes of objects, by the objects' names
        self._kinds = {name: one for name, one in kinds.items() if one}
        called = {name: called[name] for name in called if name not in self._kinds}
        edit = SourceEdit(code)
        edit.know(called)
        self._cell, self._called = code, called
        #: names of methods that other cells define
        self.methods = {name.rpartition(".")[2] for name in called if "." in name}
        own = bound_names(code.tree)
        #: the copies' names, by what they are copies of
        self._names = {
            name: edit.free_name(
                name.replace(".", "_") if "." in name else f"{name}_edited"
            )
            for name in called
            if name not in own
        }
        for node in walk(code.tree):
            if isinstance(node, ast.Name) and node.id in self._names:
                edit.replace(node, self._names[node.id])
        copies = [self._copy(called[name], name) for name in self._names]
        for one in copies:
            edit.know(names_in(ast.parse(one)))
        if copies:
            edit.at_start("\n".join(copies))
        #: not known where there is nothing to copy, or not all can be
        self.code = CellCode(edit.source() or None if all(copies) else None)
        self._trees = {
            node.name: ast.dump(node)
            for one in copies
            for node in ast.parse(one).body
            if isinstance(node, ast.FunctionDef)
        }

    @property
    def originals(self) -> dict[str, str]:
        """Give by the copies' names what they are copies of."""
        return {copy: name for name, copy in self._names.items()}

    @cached_property
    def flat(self) -> CellCode:
        """The cell with what is called in place of calls; not known without any.

        What goes over values, such as `map`, is a comprehension or a loop.
        """
        code = self.code if self.code.is_known else self._cell
        if len(code.source) > MOST_CHARACTERS:
            return CellCode(None)
        names = {*self._trees, *own_functions(code.tree)}
        methods = {one: name for one, name in self._names.items() if "." in one}
        text = ""
        for _ in range(_MOST_ROUNDS):
            more = with_methods(code, methods, self._kinds) if methods else ""
            done = inlined(CellCode(more) if more else code, names)
            if not (more or done):
                break
            text = done or more
            code = CellCode(text)
        return CellCode(self._without_unused(code) if text else None)

    def _without_unused(self, code: CellCode) -> str:
        """Take copies away that nothing calls."""
        edit = SourceEdit(code)
        kept = [*code.tree.body]
        while unused := [
            one
            for one in kept
            if isinstance(one, ast.FunctionDef)
            and one.name in self._trees
            and not any(one.name in names_in(it) for it in kept if it is not one)
        ]:
            kept = [one for one in kept if one not in unused]
        for one in code.tree.body:
            if one not in kept:
                edit.delete(one)
        return edit.source() or code.source

    def written(self, text: str) -> str:
        """Write an edit of the cell with copies as one of the cell; may be empty."""
        code = CellCode(text)
        copies = [
            node
            for node in code.tree.body
            if isinstance(node, ast.FunctionDef) and node.name in self._trees
        ]
        changed = {one.name for one in copies if ast.dump(one) != self._trees[one.name]}
        while calling := {
            one.name
            for one in copies
            if one.name not in changed and names_in(one) & changed
        }:
            changed |= calling
        text = self._without_others(code, copies, changed)
        methods = [name for name in self._names if "." in name]
        patched = [name for name in methods if self._names[name] in changed]
        return self._patched(CellCode(text), patched) if patched and text else text

    def with_sources(self, changed: Mapping[str, str]) -> str:
        """Write the cell with other sources of some that it calls; may be empty.

        Args:
            changed: sources by the names that they were given with.
        """
        text = self.code.source
        for name in changed.keys() & self._names.keys():
            copy = self._copy(self._called[name], name)
            other = self._copy(changed[name], name)
            if not (copy and other and copy in text):
                return ""
            text = text.replace(copy, other, 1)
        return self.written(text)

    def _copy(self, source: str, name: str) -> str:
        """Write a function under another name, which calls copies; may be empty."""
        code = CellCode(source)
        edit = SourceEdit(code)
        edit.know(self._names.values())
        inside = bound_names(code.tree)
        calls = self._names.keys() - inside
        for node in walk(code.tree):
            if isinstance(node, ast.Name) and node.id in calls:
                edit.replace(node, self._names[node.id])
        text = edit.source() if names_in(code.tree) & calls else source
        old, new = name.rpartition(".")[2], self._names[name]
        return re.sub(rf"\bdef\s+{old}\b", f"def {new}", text.rstrip(), count=1)

    def _without_others(
        self, code: CellCode, copies: list[ast.FunctionDef], changed: set[str]
    ) -> str:
        """Take copies away that are as what they are copies of."""
        edit = SourceEdit(code)
        edit.know(self._names)
        others = {new: name for name, new in self._names.items() if new not in changed}
        if not others.keys() & names_in(code.tree) and not any(
            one.name in others for one in copies
        ):
            return code.source
        gone = [one for one in copies if one.name in others]
        inside = {node for one in gone for node in walk(one)}
        for one in gone:
            edit.delete(one)
        for node in walk(code.tree):
            if isinstance(node, ast.Name) and node.id in others and node not in inside:
                edit.replace(node, others[node.id])
        return edit.source()

    def _patched(self, code: CellCode, methods: list[str]) -> str:
        """Have classes compute by copies of these methods while the cell runs."""
        edit, managers = SourceEdit(code), list[str]()
        names = [self._names[one] for one in methods]
        for one, name in zip(methods, names, strict=True):
            kind, _, method = one.partition(".")
            edit.know([kind])
            mock = edit.module("unittest.mock")
            managers.append(
                _PATCH.format(mock=mock, kind=kind, method=method, name=name)
            )
        statements = edit.working
        while any(
            isinstance(one, ast.FunctionDef) and one.name in self._trees
            for one in statements
        ):
            del statements[0]
        if not statements:
            return ""
        edit.under(statements, ", ".join(managers))
        return edit.source()


def _kinds(source: str) -> list[str]:
    """Give the classes that a source says an object is of; none of a function's."""
    match CellCode(source).tree.body:
        case [ast.AnnAssign(annotation=ast.Tuple(elts=kinds))]:
            return list(map(ast.unparse, kinds))
    return []
