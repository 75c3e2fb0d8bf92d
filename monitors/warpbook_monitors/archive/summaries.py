"""From frames to seconds, and from summaries to longer ones, by whole columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.archive.columns import Floats
from warpbook_monitors.archive.steps import SECOND
from warpbook_monitors.archive.table import FROM_MS, TO_MS, Table
from warpbook_monitors.frames import Device
from warpbook_monitors.history.seconds import REASONS
from warpbook_monitors.verdicts.health import REASON_BITS

#: of a mean; the least and the most are exact
_MEAN_DIGITS = 4


def bucket_ms(to_ms: Floats, step_ms: int) -> Floats:
    """Begin of the step that a row belongs to, which stands for the time before it."""
    buckets: Floats = (np.ceil(np.round(to_ms / step_ms, 9)) - 1) * step_ms
    return buckets


def reason_column(position: int, bit: int) -> str:
    """Name the share of time in which a clocks-event reason held."""
    return f"{position} reason {bit}"


def seconds_of(frames: Table, devices: Sequence[Device]) -> Table:
    """Summarize frames second by second."""
    groups = _Groups(bucket_ms(frames.to_ms, SECOND))
    columns: dict[str, Floats] = {
        FROM_MS: groups.buckets,
        TO_MS: groups.buckets + SECOND,
    }
    weights = np.ones(frames.rows)
    for position, device in enumerate(devices):
        for metric in device.metrics:
            column = frames.columns.get(f"{position} {metric.name}")
            if column is None or not np.isfinite(column).any():
                continue
            if metric.name == REASONS:
                columns |= _reasons(position, column, groups)
            columns |= _summary(
                f"{position}", metric.name, (column, column, column), weights, groups
            )
    return Table(columns, {})


def longer(summary: Table, step_ms: int) -> Table:
    """Bring summaries to a longer step; a row spans what was read of its step."""
    groups = _Groups(bucket_ms(summary.to_ms, step_ms))
    weights = summary.to_ms - summary.columns[FROM_MS]
    columns: dict[str, Floats] = {
        FROM_MS: groups.least(summary.columns[FROM_MS]),
        TO_MS: groups.most(summary.to_ms),
    }
    for name, column in summary.columns.items():
        position, _, rest = name.partition(" ")
        kind, _, metric = rest.partition(" ")
        if kind == "mean":
            columns |= _summary(
                position,
                metric,
                (
                    summary.column(f"{position} least {metric}"),
                    column,
                    summary.column(f"{position} most {metric}"),
                ),
                weights,
                groups,
            )
        elif kind == "reason":
            columns[name] = _rounded(groups.mean(column, weights))
    return Table(columns, {})


class _Groups:
    """Rows that follow one another and belong to one step."""

    def __init__(self, buckets: Floats) -> None:
        changes = np.flatnonzero(np.diff(buckets)) + 1
        self._starts: NDArray[np.intp] = np.concatenate(([0], changes)).astype(np.intp)
        self.buckets = buckets[self._starts]

    def least(self, column: Floats) -> Floats:
        least: Floats = np.fmin.reduceat(column, self._starts)
        return least

    def most(self, column: Floats) -> Floats:
        most: Floats = np.fmax.reduceat(column, self._starts)
        return most

    def mean(self, column: Floats, weights: Floats) -> Floats:
        known = np.isfinite(column)
        total = np.add.reduceat(np.where(known, column * weights, 0.0), self._starts)
        weight = np.add.reduceat(np.where(known, weights, 0.0), self._starts)
        mean: Floats = total / np.where(weight > 0, weight, np.nan)
        return mean


def _summary(
    position: str,
    metric: str,
    given: tuple[Floats, Floats, Floats],
    weights: Floats,
    groups: _Groups,
) -> Mapping[str, Floats]:
    least, mean, most = given
    lowest, highest = groups.least(least), groups.most(most)
    average = np.clip(_rounded(groups.mean(mean, weights)), lowest, highest)
    return {
        f"{position} least {metric}": lowest,
        f"{position} mean {metric}": average,
        f"{position} most {metric}": highest,
    }


def _reasons(position: int, flags: Floats, groups: _Groups) -> Mapping[str, Floats]:
    known = np.isfinite(flags)
    bits = np.where(known, flags, 0).astype(np.int64)
    weights = np.ones(len(flags))
    return {
        reason_column(position, bit): _rounded(
            groups.mean(np.where(known, (bits & bit) > 0, np.nan), weights)
        )
        for bit in REASON_BITS
    }


def _rounded(values: Floats) -> Floats:
    """To so many digits, whatever the size."""
    known = np.isfinite(values) & (values != 0)
    size = np.floor(np.log10(np.abs(np.where(known, values, 1.0))))
    scale = 10.0 ** (_MEAN_DIGITS - 1 - size)
    rounded: Floats = np.where(known, np.round(values * scale) / scale, values)
    return rounded
