"""Rows over a span: frames as they were read, or summaries of them.

A column is named by what it holds; a segment's columns begin with the position of
their device, as "0 power_watts", "0 mean power_watts".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.archive.columns import (
    MAX_ROWS,
    DamagedColumn,
    Floats,
    pack_column,
    unpack_column,
)
from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.recordings.recording import MAX_TIME_MS

_log = logging.getLogger(__name__)

#: Unix ms: until when the row stands, a column of every table
TO_MS = "to_ms"
#: and since when, of summaries; a frame stands for the time since the one before it
FROM_MS = "from_ms"
#: rows so near to those that tell of the same time anew are dropped
_APART_MS = 2000.0


@dataclass(frozen=True)
class Table:
    """Columns by name, all equally long; NaN where a row has no value."""

    columns: Mapping[str, Floats]
    #: by column: the words whose places its numbers are
    words: Mapping[str, Sequence[str]]

    @property
    def to_ms(self) -> Floats:
        """Until when each row stands."""
        return self.columns[TO_MS]

    @property
    def rows(self) -> int:
        return len(self.to_ms)

    def column(self, name: str) -> Floats:
        """A column; all NaN where the table does not have it."""
        column = self.columns.get(name)
        return np.full(self.rows, np.nan) if column is None else column

    def chosen(self, rows: NDArray[np.bool_]) -> Table:
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Table(columns, self.words)

    def only(self, names: Iterable[str]) -> Table:
        """The times, and those of some columns that there are."""
        wanted = {FROM_MS, TO_MS, *names}
        return Table(
            {name: self.columns[name] for name in self.columns if name in wanted},
            {name: self.words[name] for name in self.words if name in wanted},
        )

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Columns under other names."""
        return Table(
            {names.get(name, name): column for name, column in self.columns.items()},
            {names.get(name, name): words for name, words in self.words.items()},
        )


class _PackedTable(msgspec.Struct, array_like=True):
    rows: int
    columns: dict[str, bytes]
    words: dict[str, tuple[str, ...]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_PackedTable).decode


def pack(table: Table) -> bytes:
    columns = {name: pack_column(column) for name, column in table.columns.items()}
    words = {name: tuple(words) for name, words in table.words.items()}
    return _encode(_PackedTable(table.rows, columns, words))


def unpack(packed: bytes, step_ms: int, names: Iterable[str] | None = None) -> Table:
    """Give a table back, or only some of its columns and the times.

    Args:
        packed: what `pack` gave, or anything else.
        step_ms: what its rows stand for; 0 is frames, which have no begin.
        names: the columns that are wanted.

    Raises:
        DamagedColumn: it is none.
    """
    try:
        read = _decode(packed)
    except UNREADABLE as error:
        raise DamagedColumn(f"A segment can't be read: {error}.") from error
    wanted = read.columns if names is None else dict.fromkeys((FROM_MS, TO_MS, *names))
    columns = {
        name: unpack_column(read.columns[name], read.rows)
        for name in wanted
        if name in read.columns
    }
    for name in (FROM_MS, TO_MS) if step_ms else (TO_MS,):
        times_ms = columns.get(name)
        # NaN is in no range
        if times_ms is None or not (np.abs(times_ms) <= MAX_TIME_MS).all():
            raise DamagedColumn("A segment has no times.")
    words = {name: read.words[name] for name in columns if name in read.words}
    return Table(columns, words)


def unpack_or_leave_out(packed: bytes, step_ms: int) -> Table | None:
    """Give a table back; None, with a line in the log, where it is damaged."""
    try:
        return unpack(packed, step_ms)
    except DamagedColumn as error:
        _log.warning("A segment of the archive is left out: %s", error)
        return None


def that_fit(tables: Sequence[Table]) -> list[Table]:
    """Leave out the largest, with a line in the log, where rows are too many."""
    kept, rows = set(), 0
    for place in sorted(range(len(tables)), key=lambda place: tables[place].rows):
        rows += tables[place].rows
        if rows > MAX_ROWS:
            _log.warning("Segments of the archive are left out: too many rows.")
            break
        kept.add(place)
    return [table for place, table in enumerate(tables) if place in kept]


def joined(tables: Iterable[Table]) -> Table:
    """Put tables below one another, given in the order in which they were written.

    Where a later one tells of the same time, the clock had been set back: it holds,
    and a hole around it shows that.

    Raises:
        DamagedColumn: together they are too many rows.
    """
    kept: list[Table] = []
    for table in tables:
        if not table.rows:
            continue
        if any(_overlaps(earlier, table) for earlier in kept):
            kept = [_without(earlier, table) for earlier in kept]
        kept.append(table)
    return kept[0] if len(kept) == 1 else _below(kept)


def _overlaps(earlier: Table, later: Table) -> bool:
    return bool(earlier.rows) and bool(earlier.to_ms.max() > later.to_ms.min())


def _without(earlier: Table, later: Table) -> Table:
    """Leave out what a later table tells anew."""
    from_ms, to_ms = later.to_ms.min() - _APART_MS, later.to_ms.max() + _APART_MS
    return earlier.chosen((earlier.to_ms < from_ms) | (earlier.to_ms > to_ms))


def _below(tables: Sequence[Table]) -> Table:
    if sum(table.rows for table in tables) > MAX_ROWS:
        raise DamagedColumn("The segments have too many rows together.")
    names = dict.fromkeys(name for table in tables for name in table.columns)
    places: dict[str, dict[str, int]] = {}
    columns: dict[str, Floats] = {TO_MS: np.empty(0)}
    for name in names:
        parts = [_renumbered(table, name, places) for table in tables]
        columns[name] = np.concatenate(parts)
    order = np.argsort(columns[TO_MS], kind="stable")
    in_order = {name: column[order] for name, column in columns.items()}
    return Table(in_order, {name: tuple(known) for name, known in places.items()})


def _renumbered(table: Table, name: str, places: dict[str, dict[str, int]]) -> Floats:
    """A column; places in the table's own words become places in the common ones."""
    column = table.column(name)
    words = table.words.get(name)
    if words is None:
        return column
    common = places.setdefault(name, {})
    new = [float(common.setdefault(word, len(common))) for word in words]
    # a place that the words do not have is unknown
    known = (column >= 0) & (column < len(words))
    renumbered = np.full(len(column), np.nan)
    renumbered[known] = np.array(new)[column[known].astype(np.intp)]
    return renumbered
