"""Follows a learner's Python: from which lines a value came that is wrong.

A case that fails is run once more with it. Of each name of each call it keeps the lines
from which its value came, with how many statements lie between; of objects that are
changed in place, tensors by their storage, it keeps the same.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

from warpbook_labs.sandbox.statements import Statement, statements_of

#: how near each line is, in statements
Lines = dict[int, int]
_WITHIN = frozenset({"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"})
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_MOST_KEPT = 64
#: that a message names
MOST_STATEMENTS = 6
#: a condition is as far as so many statements that compute
_STEPS_TO_CONDITION = 2


@dataclass
class _Call:
    """One call of a learner's function, or its module."""

    frame: FrameType
    names: dict[str, Lines] = field(default_factory=dict)
    #: of statements that decide, by number
    decided: dict[int, Lines] = field(default_factory=dict)
    pending: Statement | None = None
    #: of the statement that is done now
    lines: set[int] = field(default_factory=set)
    #: that calls within it gave
    given: Lines = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    result: Lines = field(default_factory=dict)


class Follower:
    """Follows what is called while it watches."""

    def __init__(self, source: str, file: str) -> None:
        """Read a source, which is executed under this name of a file."""
        self._statements, self._file = statements_of(source), file
        self._calls: dict[int, _Call] = {}
        self._module: dict[str, Lines] = {}
        self._objects: dict[object, Lines] = {}
        self._latest: dict[str, Lines] = {}
        self._by_line: dict[int, Lines] = {}
        self._settings: Lines = {}
        #: keeps objects alive, so that none has the number of another
        self._kept: list[Any] = []
        #: what the last call from outside gave
        self.result: Lines = {}
        #: of each call from outside, its name and what its parameters hold in the end
        self.ended: list[tuple[str, dict[str, Lines]]] = []

    def of_line(self, line: int) -> Lines:
        """Give the lines of what a line did when it was last done."""
        return self._by_line.get(line, {})

    def settings(self) -> Lines:
        """Give the lines of what was set in modules."""
        return self._settings

    def named(self, lines: Lines, most: int) -> tuple[int, ...]:
        """Name the lines of the nearest statements, each with all of its lines.

        Args:
            lines: from which a value came.
            most: statements.
        """
        found: dict[int, None] = {}
        seen: list[Statement | None] = []
        for line in in_order(lines):
            statement = self._statements.get(line)
            if statement not in seen:
                if len(seen) == most or len(found) >= 2 * most:
                    break
                seen.append(statement)
            found[line] = None
        return tuple(found)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what is done here."""
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
            call = self._calls[id(frame)] = _Call(frame)
            self._take_parameters(call, code)
        return self._went

    def _within(self, frame: FrameType, event: str, _: Any) -> Any:
        """Note a line of an expression that Python runs as a function of its own."""
        call = self._caller(frame)
        if call is not None and event == "line":
            call.lines.add(frame.f_lineno)
        return self._within

    def _went(self, frame: FrameType, event: str, _: Any) -> Any:
        call = self._calls[id(frame)]
        if event == "line":
            statement = self._statements.get(frame.f_lineno)
            if statement is not call.pending:
                self._finish(call)
                call.pending = statement
            call.lines.add(frame.f_lineno)
        elif event == "return":
            call.result = self._finish(call)
            self._end(call)
        return self._went

    def _take_parameters(self, call: _Call, code: CodeType) -> None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        caller = self._caller(call.frame)
        outer: Lines = {}
        if caller is not None and caller.pending is not None:
            outer = self._read(caller, caller.pending.reads)
            merge(outer, dict.fromkeys(caller.lines, 0), 0)
        for name in code.co_varnames[:count]:
            value = call.frame.f_locals.get(name)
            known = self._objects.get(_key(value))
            if known is None:
                known = self._same(caller, value)
            call.names[name] = _nearest(outer if known is None else known)

    def _same(self, caller: _Call | None, value: Any) -> Lines | None:
        """Give the lines of a caller's name that has this very value."""
        if caller is None or caller.pending is None:
            return None
        for name in caller.pending.reads:
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
        found: Lines = {}
        for name in names:
            known = call.names.get(name)
            if known is None:
                if name in call.frame.f_code.co_freevars:
                    known = self._latest.get(name)
                else:
                    known = self._module.get(name)
            if known:
                merge(found, known, 1)
            value = call.frame.f_locals.get(name)
            if not isinstance(value, (*_PLAIN, ModuleType)):
                merge(found, self._objects.get(_key(value), {}), 1)
        return found

    def _finish(self, call: _Call) -> Lines:
        """Note what the statement has done that was begun last."""
        statement, lines, given = call.pending, call.lines, call.given
        call.pending, call.lines, call.given = None, set(), {}
        if statement is None or statement.is_silent:
            return {}
        found = self._read(call, statement.reads)
        merge(found, given, 1)
        for number in statement.deciders:
            merge(found, call.decided.get(number, {}), _STEPS_TO_CONDITION)
        merge(found, dict.fromkeys(lines, 0), 0)
        found = _nearest(found)
        call.decided[statement.number] = found
        for line in lines:
            self._by_line[line] = found
        for name in statement.within & call.names.keys():
            # it may have another value for that this did not go the other way
            call.names[name] = dict(call.names[name])
            merge(call.names[name], found, _STEPS_TO_CONDITION)
        for name in statement.binds | statement.changes:
            value = call.frame.f_locals.get(name)
            if value is None:
                value = call.frame.f_globals.get(name)
            if isinstance(value, ModuleType):
                # what is set in it may decide on whatever comes later
                if name in statement.settings:
                    merge(self._settings, found, 1)
                continue
            if name not in statement.binds and isinstance(value, _PLAIN):
                # nothing changes it in place
                continue
            known = dict(found)
            if name not in statement.binds:
                merge(known, call.names.get(name, {}), 1)
                call.changed.add(name)
            call.names[name] = self._latest[name] = known
            if call.frame.f_code.co_name == "<module>":
                self._module[name] = known
            if isinstance(value, _PLAIN):
                continue
            self._kept.append(value)
            # else it is another name for what is known
            if name not in statement.binds or _key(value) not in self._objects:
                self._objects[_key(value)] = known
        return found

    def _end(self, call: _Call) -> None:
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
            parameters = {name: self._read(call, (name,)) for name in names}
            self.ended.append((code.co_name, parameters))


def in_order(lines: Lines) -> tuple[int, ...]:
    """Name lines, the nearest first."""
    return tuple(sorted(lines, key=lambda line: (lines[line], -line)))


def merge(into: Lines, lines: Lines, steps: int) -> None:
    """Add lines that are so many statements further away."""
    for line, distance in lines.items():
        into[line] = min(into.get(line, distance + steps), distance + steps)


def _nearest(lines: Lines) -> Lines:
    if len(lines) <= _MOST_KEPT:
        return dict(lines)
    return {line: lines[line] for line in in_order(lines)[:_MOST_KEPT]}


def _key(value: Any) -> object:
    """Name an object; a tensor by where its numbers are, which its views share."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "torch" and kind.__name__ in (
        "Tensor",
        "Parameter",
    ):
        with contextlib.suppress(Exception):
            return "storage", int(value.untyped_storage().data_ptr())
    return id(value)
