"""A span in as few steps as a chart has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.history.readings import Floats, Readings


@dataclass(frozen=True)
class Steps:
    """Readings in equal steps; NaN where a step has none."""

    least: Floats
    mean: Floats
    most: Floats


def in_steps(
    readings: Readings,
    columns: Sequence[int],
    from_ms: float,
    step_ms: float,
    count: int,
) -> Steps:
    """Bring some metrics of a device into `count` equal steps.

    A step takes the readings that stand for half of it, or that lie in it by half.
    """
    row, step, overlap_ms = _met(readings, from_ms, step_ms, count)
    shape = (count, len(columns))
    chosen = np.array(columns, dtype=np.intp)

    def values(table: Floats) -> Floats:
        return table[np.ix_(row, chosen)] if len(row) else np.empty((0, len(chosen)))

    least, most = np.full(shape, np.nan), np.full(shape, np.nan)
    np.fmin.at(least, step, values(readings.least))
    np.fmax.at(most, step, values(readings.most))
    means = values(readings.mean)
    known = np.isfinite(means)
    total, weight = np.zeros(shape), np.zeros(shape)
    np.add.at(total, step, np.where(known, means, 0) * overlap_ms[:, None])
    np.add.at(weight, step, known * overlap_ms[:, None])
    mean = total / np.where(weight > 0, weight, np.nan)
    return Steps(least, mean, most)


def _met(
    readings: Readings, from_ms: float, step_ms: float, count: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Which row meets which step, and for how long."""
    starts, ends = readings.starts_ms - from_ms, readings.ends_ms - from_ms
    first = np.clip(np.floor(starts / step_ms), 0, count).astype(np.intp)
    last = np.clip(np.ceil(ends / step_ms), 0, count).astype(np.intp)
    met = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(met)), met)
    step = np.arange(len(row)) - np.repeat(np.cumsum(met) - met, met) + first[row]
    overlap = np.minimum(ends[row], (step + 1) * step_ms) - np.maximum(
        starts[row], step * step_ms
    )
    # a little less than half: two neighbours may share a step in equal parts
    enough = overlap > 0.499 * np.minimum(ends[row] - starts[row], step_ms)
    return row[enough], step[enough], overlap[enough]


def rounded(table: Floats) -> list[list[float | None]]:
    """Give a list for each column: six digits, and None where there is nothing."""
    known = np.isfinite(table)
    size = np.floor(np.log10(np.abs(np.where(known & (table != 0), table, 1.0))))
    scale = 10.0 ** np.maximum(5 - size, 0)
    values = np.round(table * scale) / scale
    written = values.astype(object)
    written[~known] = None
    columns: list[list[float | None]] = written.T.tolist()
    return columns
