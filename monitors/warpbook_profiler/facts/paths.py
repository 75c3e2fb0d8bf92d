"""Which operators enclose a moment on a thread, from the outermost to the innermost."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    Category,
    Columns,
    Int64s,
    groups,
    interned,
    rows_by,
)
from warpbook_profiler.events.intervals import enclosing, levels

#: what is numbered, or has an address, is the same in each step
_STEP = re.compile(r"(ProfilerStep#)\d+$")
_ADDRESS = re.compile(r"( object)? at 0x[0-9a-f]+(?=>$)")


def steps_as_one(operators: Columns) -> Columns:
    """Give the same name to all steps of a schedule, and to methods of all objects."""
    names, place = interned(
        _ADDRESS.sub("", _STEP.sub(r"\1", name)) for name in operators.names
    )
    if names == operators.names:
        return operators
    return replace(operators, names=names, name=place.astype(np.int64)[operators.name])


class Paths:
    """The operators of every thread as trees; equal chains of names are one path."""

    def __init__(
        self,
        events: Columns,
        categories: tuple[Category, ...] = (Category.OPERATOR,),
    ) -> None:
        """Find who encloses whom.

        Args:
            events: of one trace.
            categories: of the events that enclose; of threads of the host.
        """
        #: by path: the path without its last operator, and the name of that one
        self._parents: list[int] = []
        self._names: list[int] = []
        self._threads: dict[int, _Thread] = {}
        operators = steps_as_one(events.only(*categories))
        self._event_names = operators.names
        known: dict[tuple[int, int], int] = {}
        for mine in rows_by(operators.track):
            self._threads[int(operators.track[mine[0]])] = self._thread(
                operators.start_ns[mine],
                operators.end_ns[mine],
                operators.name[mine],
                known,
            )

    @property
    def parents(self) -> list[int]:
        """Give for each path the one around it, or NONE; parents come first."""
        return self._parents

    @property
    def last_names(self) -> list[str]:
        """Give the name of each path's last operator."""
        return [self._event_names[name] for name in self._names]

    def of_thread(self, thread: int) -> Int64s:
        """Give the path of each event of a thread, in their order."""
        return self._threads[thread].path

    def at(self, thread: Int64s, at_ns: Int64s) -> Int64s:
        """Give the path that encloses each moment on its thread, or NONE."""
        paths = np.full(len(at_ns), NONE, np.int64)
        for mine in rows_by(thread):
            tree = self._threads.get(int(thread[mine[0]]))
            if tree is not None:
                paths[mine] = tree.at(at_ns[mine])
        return paths

    def names(self, path: int) -> tuple[str, ...]:
        """Give the operators of a path, the outermost first."""
        names: list[str] = []
        while path != NONE:
            names.append(self._event_names[self._names[path]])
            path = self._parents[path]
        return tuple(reversed(names))

    def _thread(
        self,
        start_ns: Int64s,
        end_ns: Int64s,
        name: Int64s,
        known: dict[tuple[int, int], int],
    ) -> _Thread:
        parent = np.full(len(name), NONE, np.int64)
        path = np.full(len(name), NONE, np.int64)
        for top, above in levels(start_ns, end_ns):
            parent[top] = above
            outer = np.where(above == NONE, NONE, path[above])
            path[top] = self._interned(outer, name[top], known)
        return _Thread(start_ns, end_ns, parent, path)

    def _interned(
        self, outer: Int64s, name: Int64s, known: dict[tuple[int, int], int]
    ) -> Int64s:
        first, back = groups(outer, name)
        numbers = np.empty(len(first), np.int64)
        for at, row in enumerate(first):
            key = (int(outer[row]), int(name[row]))
            number = known.setdefault(key, len(self._names))
            if number == len(self._names):
                self._parents.append(key[0])
                self._names.append(key[1])
            numbers[at] = number
        numbered: Int64s = numbers[back]
        return numbered


class _Thread:
    """The operators of one thread, in order, each with its parent and its path."""

    def __init__(
        self, start_ns: Int64s, end_ns: Int64s, parent: Int64s, path: Int64s
    ) -> None:
        self._start_ns, self._end_ns, self._parent = start_ns, end_ns, parent
        self.path = path
        # the last is that of none
        self._path = np.append(path, NONE)

    def at(self, at_ns: Int64s) -> Int64s:
        row = enclosing(self._start_ns, self._end_ns, self._parent, at_ns)
        path: Int64s = self._path[row]
        return path
