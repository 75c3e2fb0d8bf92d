"""Where in the program the GPU was made to wait: the operator, and the cell's line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np

from warpbook_profiler.events.columns import NONE, Bools, Int64s, groups, interned
from warpbook_profiler.events.marks import Marks
from warpbook_profiler.facts.calls import Calls
from warpbook_profiler.facts.idle import GapCauses, Gaps
from warpbook_profiler.facts.paths import Paths
from warpbook_profiler.model.figures import IdlePlace, SyncTotal

#: around all that a step of the profiler's schedule does: no place
_STEP = "ProfilerStep#"
#: of each cause, the places that are told
_MOST_PLACES = 5
#: operator or annotation, and line
_Place = tuple[str | None, int | None]


class Places:
    """Knows of each gap where the host was."""

    def __init__(
        self,
        gaps: Gaps,
        causes: GapCauses,
        calls: Calls,
        marks: Marks | None,
        paths: Paths,
    ) -> None:
        self._gaps = gaps
        self._causes = causes
        self._calls = calls
        self._marks = marks
        self._paths = paths

    def sync_points(self) -> tuple[SyncTotal, ...]:
        """Add up all calls that wait, the one after which the GPU idled most first."""
        api = self._calls.api
        stall_ns = np.zeros(len(api), np.int64)
        known = self._causes.sync != NONE
        np.add.at(
            stall_ns, self._causes.sync[known], self._causes.synchronize_ns[known]
        )
        rows = np.flatnonzero(self._calls.waits)
        path = self._paths.at(api.track[rows], api.start_ns[rows])
        line = self._line(api.start_ns[rows])
        # paths that differ within one operator are one place
        paths, place = np.unique(path, return_inverse=True)
        names, operator = interned(
            _operator(self._paths.names(int(number))) or "" for number in paths
        )
        first, group = groups(api.name[rows], operator[place], line)
        totals = []
        for number, one in enumerate(first):
            mine = rows[group == number]
            totals.append(
                SyncTotal(
                    api.names[api.name[rows[one]]],
                    names[operator[place[one]]] or None,
                    _known(line[one]),
                    len(mine),
                    int(api.duration_ns[mine].sum()),
                    int(stall_ns[mine].sum()),
                )
            )
        totals.sort(
            key=lambda total: (
                -total.stall_ns,
                -total.time_ns,
                total.name,
                total.operator or "",
                total.line or 0,
            )
        )
        return tuple(totals)

    def idle_places(self) -> tuple[IdlePlace, ...]:
        """Tell where the host launched too slowly, and where it did other work."""
        gaps, causes = self._gaps, self._causes
        launch_ns = np.append(self._calls.api.start_ns, 0)[gaps.launch]
        launch_ns = np.where(gaps.launch == NONE, gaps.start_ns, launch_ns)
        # of operators the one in the middle, or else the one that launched in the end
        middle_ns = causes.other_at_ns
        operator_ns = np.where(self._in_operator(middle_ns), middle_ns, launch_ns)
        spent_ns = causes.operator_ns + causes.api_ns
        return (
            *self._told("launching", self._spent(causes.launching_ns, launch_ns)),
            *self._told(
                "other",
                self._spent(spent_ns, operator_ns)
                + self._spent(causes.python_ns, middle_ns, in_operators=False),
            ),
        )

    def _spent(
        self, spent_ns: Int64s, at_ns: Int64s, in_operators: bool = True
    ) -> Counter[_Place]:
        """Add up by place what was spent in each gap, given a moment of it."""
        chosen = np.flatnonzero(spent_ns)
        path = self._paths.at(self._causes.thread[chosen], at_ns[chosen])
        line = self._line(at_ns[chosen])
        first, group = groups(path, line)
        sums_ns = np.bincount(group, spent_ns[chosen], minlength=len(first))
        # paths that differ within one operator are one place
        totals: Counter[_Place] = Counter()
        for one, sum_ns in zip(first, sums_ns, strict=True):
            names = self._paths.names(int(path[one]))
            name = _operator(names)
            if name is None:
                name = _annotation(names)
            elif not in_operators:
                name = None
            totals[name, _known(line[one])] += int(sum_ns)
        return totals

    def _told(
        self, cause: Literal["launching", "other"], totals: Counter[_Place]
    ) -> Iterator[IdlePlace]:
        places = [
            IdlePlace(cause, *place, time_ns) for place, time_ns in totals.items()
        ]
        places.sort(
            key=lambda idle_place: (
                -idle_place.time_ns,
                idle_place.operator or "",
                idle_place.line or 0,
            )
        )
        yield from places[:_MOST_PLACES]

    def _line(self, at_ns: Int64s) -> Int64s:
        if self._marks is None:
            return np.full(len(at_ns), NONE, np.int64)
        return self._marks.line_at(at_ns)

    def _in_operator(self, at_ns: Int64s) -> Bools:
        path = self._paths.at(self._causes.thread, at_ns)
        first, place = groups(path)
        is_operator = [
            _operator(self._paths.names(int(number))) is not None
            for number in path[first]
        ]
        return np.array(is_operator, np.bool_)[place]


def _operator(names: tuple[str, ...]) -> str | None:
    """Give the outermost; a person's own annotations have no namespace."""
    return next((name for name in names if "::" in name), None)


def _annotation(names: tuple[str, ...]) -> str | None:
    return next((name for name in reversed(names) if name != _STEP), None)


def _known(line: np.int64) -> int | None:
    return None if line == NONE else int(line)
