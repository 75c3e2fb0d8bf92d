"""Frames as columns, and back as the messages that they were."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from warpbook_monitors.archive.columns import Floats
from warpbook_monitors.archive.table import TO_MS, Table
from warpbook_monitors.frames import Device, Frame, Reading

#: whole numbers beyond it are not exact
_MOST_SEQ = 2.0**53
#: of a table: five times those of sixteen GPUs in five minutes at 10 Hz
_MOST_VALUES = 2**24
SEQ, LABEL, STATE, WHY = "seq", "label", "state", "why"
_STATES = ("ok", "stale", "lost", "no_permission", "not_supported", "unavailable")


class FrameTable:
    """Takes frames of the same devices, some at a time, and gives their table."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = devices
        self._width = 3 + sum(2 + len(device.metrics) for device in devices)
        self._blocks: list[tuple[Floats, list[Floats]]] = []
        self._places: dict[str, dict[str, int]] = {}
        self.rows = 0

    def append(self, frames: Sequence[Frame]) -> None:
        """Take frames, about a second of them: each block is made at once.

        Of a hostile file that has far more than there ever are, the first are taken.
        """
        frames = frames[: max(_MOST_VALUES // self._width - self.rows, 0)]
        heads = np.array(
            [
                (frame.time_ms, frame.seq, self._place(LABEL, frame.label))
                for frame in frames
            ],
            dtype=np.float64,
        )
        blocks = []
        for position, device in enumerate(self.devices):
            nothing = (None,) * len(device.metrics)
            rows = []
            for frame in frames:
                reading = _reading(frame, position)
                fits = reading is not None and len(reading.values) == len(nothing)
                values = reading.values if reading is not None and fits else nothing
                state = None if reading is None else reading.state
                why = reading.why if reading is not None else None
                rows.append(
                    (
                        self._place(f"{position} {STATE}", state),
                        self._place(f"{position} {WHY}", why or None),
                        *values,
                    )
                )
            # NumPy makes NaN of None
            blocks.append(np.array(rows, dtype=np.float64))
        self._blocks.append((heads, blocks))
        self.rows += len(frames)

    def table(self) -> Table:
        heads = np.concatenate([heads for heads, _ in self._blocks])
        columns: dict[str, Floats] = {TO_MS: heads[:, 0], SEQ: heads[:, 1]}
        columns[LABEL] = heads[:, 2]
        for position, device in enumerate(self.devices):
            block = np.concatenate([blocks[position] for _, blocks in self._blocks])
            names = [STATE, WHY, *(metric.name for metric in device.metrics)]
            for place, name in enumerate(names):
                column = block[:, place]
                if np.isfinite(column).any():
                    columns[f"{position} {name}"] = column
        words = {
            name: tuple(places)
            for name, places in self._places.items()
            if name in columns
        }
        return Table(columns, words)

    def _place(self, name: str, word: str | None) -> float | None:
        if word is None:
            return None
        places = self._places.setdefault(name, {})
        return float(places.setdefault(word, len(places)))


def frames_of(table: Table, devices: Sequence[Device]) -> Iterator[Frame]:
    """Give the frames of a table, as they were taken; without a number it is none."""
    seqs, labels = table.column(SEQ), _words(table, LABEL)
    parts = [_Part(table, position, device) for position, device in enumerate(devices)]
    for row, time_ms in enumerate(table.to_ms):
        if not 0 <= seqs[row] <= _MOST_SEQ:
            continue
        readings = tuple(
            reading for part in parts if (reading := part.reading(row)) is not None
        )
        yield Frame(int(seqs[row]), float(time_ms), readings, labels[row])


class _Part:
    """One device's columns, as lists: a value at a time is read from them."""

    def __init__(self, table: Table, position: int, device: Device) -> None:
        self._position = position
        self._states = _words(table, f"{position} {STATE}")
        self._whys = _words(table, f"{position} {WHY}")
        values = [table.column(f"{position} {m.name}") for m in device.metrics]
        stacked = np.stack(values, axis=1) if values else np.empty((table.rows, 0))
        self._values: list[list[float]] = stacked.tolist()

    def reading(self, row: int) -> Reading | None:
        state = self._states[row]
        if state is None or state not in _STATES:
            return None
        why = self._whys[row] or ""
        values = tuple(map(_number, self._values[row])) if state == "ok" else ()
        return Reading(self._position, state, values, why)  # type: ignore[arg-type]


def _words(table: Table, name: str) -> list[str | None]:
    words: Sequence[str] = table.words.get(name, ())
    return [
        words[int(place)] if 0 <= place < len(words) else None
        for place in table.column(name)
    ]


def _number(value: float) -> float | None:
    """NaN is no value; a whole number has no point, as it was written."""
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else value


def _reading(frame: Frame, position: int) -> Reading | None:
    # readings are in the order of devices, nearly always all of them
    if position < len(frame.readings) and frame.readings[position].device == position:
        return frame.readings[position]
    return next((r for r in frame.readings if r.device == position), None)
