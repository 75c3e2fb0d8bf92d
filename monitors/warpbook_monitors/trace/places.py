"""Where in the program the GPU was made to wait: the operator, and the cell's line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from warpbook_monitors.trace.calls import Calls
from warpbook_monitors.trace.columns import NONE, Bools, Int64s, groups, interned
from warpbook_monitors.trace.figures import IdlePlace, SyncTotal
from warpbook_monitors.trace.idle import GapCauses, Gaps
from warpbook_monitors.trace.marks import Marks
from warpbook_monitors.trace.paths import Paths

#: of each cause, the places that are told
_MOST_PLACES = 5


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
        """Take what is known of the gaps."""
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
        np.add.at(stall_ns, self._causes.sync[known], self._gaps.host_wait_ns()[known])
        rows = np.flatnonzero(self._calls.waits)
        path = self._paths.at(api.track[rows], api.start_ns[rows])
        line = self._line(api.start_ns[rows])
        # paths that differ within one operator are one place
        paths, place = np.unique(path, return_inverse=True)
        names, operator = interned(self._operator(int(each)) or "" for each in paths)
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
            key=lambda each: (
                -each.stall_ns,
                -each.time_ns,
                each.name,
                each.operator or "",
                each.line or 0,
            )
        )
        return tuple(totals)

    def idle_places(self) -> tuple[IdlePlace, ...]:
        """Tell where the host launched too slowly, and where it did other work."""
        waiting = (self._gaps.host_wait_ns() > 0) & (self._causes.sync == NONE)
        launching = waiting & self._causes.launching
        # of a launch that came late its operator, else what was done in the middle
        launch_ns = np.append(self._calls.api.start_ns, 0)[self._gaps.launch]
        middle_ns = (self._gaps.start_ns + self._gaps.end_ns) // 2
        return (
            *self._places("launching", launching, launch_ns),
            *self._places("other", waiting & ~launching, middle_ns),
        )

    def _places(
        self, cause: Literal["launching", "other"], chosen: Bools, at_ns: Int64s
    ) -> Iterator[IdlePlace]:
        path = self._paths.at(self._causes.thread[chosen], at_ns[chosen])
        line = self._line(at_ns[chosen])
        first, group = groups(path, line)
        waits_ns = self._gaps.host_wait_ns()[chosen]
        # paths that differ within one operator are one place
        totals: dict[tuple[str | None, int | None], int] = {}
        sums_ns = np.bincount(group, waits_ns, minlength=len(first))
        for one, sum_ns in zip(first, sums_ns, strict=True):
            place = self._operator(int(path[one])), _known(line[one])
            totals[place] = totals.get(place, 0) + int(sum_ns)
        found = [IdlePlace(cause, *place, time_ns) for place, time_ns in totals.items()]
        found.sort(
            key=lambda each: (-each.time_ns, each.operator or "", each.line or 0)
        )
        yield from found[:_MOST_PLACES]

    def _line(self, at_ns: Int64s) -> Int64s:
        if self._marks is None:
            return np.full(len(at_ns), NONE, np.int64)
        return self._marks.line_at(at_ns)

    def _operator(self, path: int) -> str | None:
        """Give the outermost; a person's own annotations have no namespace."""
        return next((name for name in self._paths.names(path) if "::" in name), None)


def _known(line: np.int64) -> int | None:
    return None if line == NONE else int(line)
