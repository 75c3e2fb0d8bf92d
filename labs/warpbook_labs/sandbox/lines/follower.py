"""Follows a learner's Python: from which lines a value came that is wrong.

A case that fails is run once more with it. Of each name of each call it keeps the lines
from which its value came, with how many statements lie between; of objects that are
changed in place, it keeps the same.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

from warpbook_labs.sandbox.lines.objects import (
    Lines,
    Objects,
    VersionOf,
    in_order,
    is_plain,
    merge,
    nearest,
    part_of,
    version_of,
)
from warpbook_labs.sandbox.lines.statements import Statement, statements_of

_WITHIN = frozenset({"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"})
#: that a message names, and of these, assignments that nothing has read
MOST_LINES, _MOST_UNREAD = 7, 2
#: of a value: how far the names are that only decide where it is read or written
_STEPS_TO_OTHER = 4
#: a branch that was not taken is as far as so many statements that compute
_STEPS_TO_BRANCH = 2
#: and a loop that may have gone round more often, as far as so many
_STEPS_TO_LOOP = 5
#: how far the statement is that called a function, from those within it
_STEPS_TO_CALLER = 2
#: how far what a loop's last round changed is, from what this one does
_STEPS_TO_ROUND = 1
#: how far lines within a long statement are, from its first and its last
_STEPS_TO_WITHIN = 2


@dataclass
class _Call:
    """One call of a learner's function, or its module."""

    frame: FrameType
    #: of the statement that called it
    context: Lines
    names: dict[str, Lines] = field(default_factory=dict)
    #: of names that are bound again and again: where they first were
    first: dict[str, Lines] = field(default_factory=dict)
    #: of statements that decide, by number
    decided: dict[int, Lines] = field(default_factory=dict)
    pending: Statement | None = None
    #: where the statement begins that was done last
    line: int = 0
    #: of the statement that is done now
    lines: set[int] = field(default_factory=set)
    #: that calls within it gave
    given: Lines = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    result: Lines = field(default_factory=dict)
    #: by name, the line that gave it a value which nothing has read yet
    unread: dict[str, int] = field(default_factory=dict)


class Follower:
    """Follows what is called while it watches."""

    def __init__(
        self, source: str, file: str, version_of: VersionOf = version_of
    ) -> None:
        """Read a source.

        Args:
            file: the name of a file under which it is executed.
            version_of: counts how often a tensor was changed.
        """
        self._statements, self._file = statements_of(source), file
        self._calls: dict[int, _Call] = {}
        self._module: dict[str, Lines] = {}
        self._objects = Objects(version_of)
        self._latest: dict[str, Lines] = {}
        self._by_line: dict[int, Lines] = {}
        self._places: dict[int, Lines] = {}
        #: of what was set in modules
        self.settings: Lines = {}
        #: by line, whether what it assigned was ever read
        self._is_read: dict[int, bool] = {}
        #: what calls from outside gave
        self._given_back: list[tuple[Any, Lines]] = []
        #: what the last call from outside gave
        self.result: Lines = {}
        #: of each call from outside, its name and what its parameters hold in the end
        self.ended: list[tuple[str, dict[str, Lines]]] = []

    def of_line(self, line: int) -> Lines:
        """Give the lines of what a line computed when it was last done."""
        return self._by_line.get(line, {})

    def of_place(self, line: int) -> Lines:
        """Give the lines of where a line read and wrote when it was last done."""
        return self._places.get(line, {})

    def unread(self) -> tuple[int, ...]:
        """Give the lines of assignments whose values nothing has read."""
        return tuple(
            sorted(line for line, is_read in self._is_read.items() if not is_read)
        )

    def explanation(self, lines: Lines) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Name the nearest of these lines, then assignments that nothing has read."""
        unread = self.unread()[:_MOST_UNREAD]
        order = in_order(self.by_statements(lines))
        others = tuple(line for line in order if line not in unread)
        return others[: MOST_LINES - len(unread)], unread

    def by_statements(self, lines: Lines) -> Lines:
        """Have lines within long statements be farther than where these begin and end.

        Else a statement over many lines would be all that is named.
        """
        farther = dict(lines)
        for line in lines:
            statement = self._statements.get(line)
            if statement is not None and line not in statement.ends:
                farther[line] += _STEPS_TO_WITHIN
        return farther

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._began)
        try:
            yield
        finally:
            sys.settrace(before)

    def _began(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_filename != self._file or event != "call":
            return None
        if code.co_name in _WITHIN:
            return self._within
        call = self._calls.get(id(frame))
        if call is None:
            caller = self._caller(frame)
            call = self._calls[id(frame)] = _Call(frame, self._context(caller))
            self._take_parameters(call, caller, code)
        return self._went

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        """Note a line of an expression that Python runs as a function of its own."""
        call = self._caller(frame)
        if call is not None and event == "line":
            call.lines.add(frame.f_lineno)
        return self._within

    def _went(self, frame: FrameType, event: str, value: Any) -> Any:
        call = self._calls[id(frame)]
        if event == "line":
            statement = self._statements.get(frame.f_lineno)
            if statement is not call.pending:
                self._finish(call)
                call.pending = statement
            call.lines.add(frame.f_lineno)
        elif event == "return":
            call.result = self._finish(call)
            self._end(call, value)
        return self._went

    def _context(self, caller: _Call | None) -> Lines:
        """Give the lines that had a function called."""
        if caller is None or caller.pending is None:
            return {}
        lines: Lines = dict.fromkeys(caller.lines, 0)
        self._add_deciders(lines, caller, caller.pending)
        merge(lines, caller.context, _STEPS_TO_CALLER)
        return nearest(lines)

    def _add_deciders(self, lines: Lines, call: _Call, statement: Statement) -> None:
        for number, steps in statement.deciders.items():
            merge(lines, call.decided.get(number, {}), steps)

    def _take_parameters(
        self, call: _Call, caller: _Call | None, code: CodeType
    ) -> None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        outer: Lines = {}
        if caller is not None and caller.pending is not None:
            outer = self._read(caller, caller.pending.reads)
            merge(outer, dict.fromkeys(caller.lines, 0), 0)
        for name in code.co_varnames[:count]:
            value = call.frame.f_locals.get(name)
            known: Lines | None = self._objects.lines(value) or None
            if known is None:
                known = self._same(caller, value)
            call.names[name] = nearest(outer if known is None else known)

    def _same(self, caller: _Call | None, value: Any) -> Lines | None:
        """Give the lines of a caller's name that has this very value."""
        if caller is None:
            # what `prepare` gave is handed to `run`
            known = (lines for given, lines in self._given_back if given is value)
            return None if isinstance(value, bool) else next(known, None)
        for name in caller.pending.reads if caller.pending is not None else ():
            if name in caller.names and caller.frame.f_locals.get(name) is value:
                return caller.names[name]
        return None

    def _caller(self, frame: FrameType) -> _Call | None:
        outer = frame.f_back
        while outer is not None:
            call = self._calls.get(id(outer))
            if call is not None and call.frame is outer:
                return call
            outer = outer.f_back
        return None

    def _read(self, call: _Call, names: Iterable[str]) -> Lines:
        lines: Lines = {}
        for name in names:
            merge(lines, self._of_name(call, name), 1)
        return lines

    def _of_name(self, call: _Call, name: str) -> Lines:
        known = call.names.get(name)
        if known is None:
            if name in call.frame.f_code.co_freevars:
                known = self._latest.get(name)
            else:
                known = self._module.get(name)
        lines = dict(known or {})
        merge(lines, call.first.get(name, {}), 0)
        merge(lines, _with_rounds(call, self._objects.lines(_value(call, name))), 0)
        return lines

    def _read_parts(self, call: _Call, parts: Iterable[ast.expr]) -> Lines:
        """Give the lines of objects that are held by others."""
        merged: Lines = {}
        held = _names(call)
        for part in parts:
            node, lines = part, self._objects.lines(part_of(part, held))
            while not lines and isinstance(node, ast.Attribute | ast.Subscript):
                node = node.value
                lines = self._objects.lines(part_of(node, held))
            if isinstance(node, ast.Name):
                # nothing is known of the part, so the whole counts
                lines = self._of_name(call, node.id)
            merge(merged, lines, 1)
        return _with_rounds(call, merged)

    def _finish(self, call: _Call) -> Lines:
        """Note what the statement has done that was begun last."""
        statement, lines, given = call.pending, call.lines, call.given
        call.pending, call.lines, call.given = None, set(), {}
        if statement is None or statement.is_silent:
            return {}
        call.line = statement.line
        for name in statement.reads | statement.places | statement.changes:
            if name in call.unread:
                self._is_read[call.unread.pop(name)] = True
        shared: Lines = dict(given)
        self._add_deciders(shared, call, statement)
        merge(shared, call.context, _STEPS_TO_CALLER)
        merge(shared, dict.fromkeys(lines, 0), 0)
        computed_lines, where = self._used(call, statement, shared)
        by_name = {
            name: self._used(call, part, shared)[0]
            for name, part in statement.by_name.items()
        }
        call.decided[statement.number] = computed_lines
        for line in lines:
            self._by_line[line], self._places[line] = computed_lines, where
        self._write(call, statement, computed_lines, by_name)
        return computed_lines

    def _used(
        self, call: _Call, statement: Statement, shared: Lines
    ) -> tuple[Lines, Lines]:
        """Give the lines of what a statement computes, and of where it reads."""
        computed = self._read(call, statement.whole)
        merge(computed, self._read_parts(call, statement.parts), 0)
        placed = self._read(call, statement.places)
        lines, where = dict(shared), dict(shared)
        merge(lines, computed, 0)
        merge(lines, placed, _STEPS_TO_OTHER - 1)
        merge(where, placed, 0)
        merge(where, computed, _STEPS_TO_OTHER - 1)
        return nearest(lines), where

    def _write(
        self,
        call: _Call,
        statement: Statement,
        lines: Lines,
        by_name: Mapping[str, Lines],
    ) -> None:
        """Note what a statement binds and changes.

        Args:
            lines: the lines of all that it computes.
            by_name: of names that have a part of it, the lines of that part.
        """
        for name in statement.within & call.names.keys():
            # it may have another value for that this did not go the other way
            call.names[name] = dict(call.names[name])
            steps = _STEPS_TO_LOOP if statement.is_loop else _STEPS_TO_BRANCH
            merge(call.names[name], lines, steps)
        held = [_value(call, name) for name in statement.reads]
        for name in statement.binds | statement.changes:
            value = _value(call, name)
            if isinstance(value, ModuleType):
                # what is set in it may decide on whatever comes later
                if name in statement.settings:
                    merge(self.settings, lines, 1)
                continue
            is_bound = name in statement.binds
            if not is_bound and is_plain(value):
                # nothing changes it in place
                continue
            computed = by_name.get(name, lines) if is_bound else lines
            known = dict(computed)
            if not is_bound:
                merge(known, call.names.get(name, {}), 1)
                call.changed.add(name)
                self._objects.change(value, lines)
            elif name not in statement.reads:
                call.first[name] = computed
            call.names[name] = self._latest[name] = known
            if call.frame.f_code.co_name == "<module>":
                self._module[name] = known
            if is_bound and not statement.is_alias:
                # else it is another name for what is known
                self._objects.make(value, computed, held)
        self._note_assigned(call, statement)
        names = _names(call)
        for part in statement.changed_parts:
            self._objects.change(part_of(part, names), lines)
        for tensor in self._objects.changed_tensors(list(call.frame.f_locals.values())):
            self._objects.change(tensor, lines)

    def _note_assigned(self, call: _Call, statement: Statement) -> None:
        name = statement.assigned
        value = _value(call, name) if name else None
        if statement.value_lines and type(value) is dict:
            if len(value) == len(statement.value_lines):
                elements = zip(statement.value_lines, value.values(), strict=True)
                for line, element in elements:
                    self._objects.make(element, {line: 0})
        code = call.frame.f_code
        is_local = name in code.co_varnames and name not in code.co_cellvars
        if is_local and not name.startswith("_"):
            call.unread[name] = statement.line
            self._is_read.setdefault(statement.line, False)

    def _end(self, call: _Call, value: Any) -> None:
        """Hand on what a call gave, and what it changed of what it was given."""
        code = call.frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        caller = self._caller(call.frame)
        if caller is not None:
            merge(caller.given, call.result, 1)
            for name in call.changed & set(names):
                merge(caller.given, call.names[name], 1)
        elif code.co_name != "<module>":
            self.result = call.result
            self._given_back.append((value, call.result))
            self._objects.make(value, call.result)
            for element in value if type(value) is tuple else ():
                self._objects.make(element, call.result)
            parameters = {name: self._read(call, (name,)) for name in names}
            self.ended.append((code.co_name, parameters))


def _with_rounds(call: _Call, lines: Lines) -> Lines:
    """Have changes further down be farther: they are of a loop's last round."""
    here, code = call.line, call.frame.f_code
    last = max((line or 0 for _, _, line in code.co_lines()), default=0)
    return {
        line: distance + (_STEPS_TO_ROUND if here < line <= last else 0)
        for line, distance in lines.items()
    }


def _value(call: _Call, name: str) -> Any:
    value = call.frame.f_locals.get(name)
    return call.frame.f_globals.get(name) if value is None else value


def _names(call: _Call) -> Mapping[str, Any]:
    return ChainMap(call.frame.f_locals, call.frame.f_globals)
