"""Reads what operators were called with from torch's raw events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from warpbook_monitors.trace.columns import NONE, Int32s, Operands
from warpbook_monitors.trace.flops import is_modelled


def read_operands(
    events: Sequence[Any], rows: Iterable[int], names: tuple[tuple[str, ...], Int32s]
) -> tuple[tuple[Operands, ...], Int32s]:
    """Read some operators' operands; a microsecond or two for each.

    Args:
        events: all of them.
        rows: the operators that matter.
        names: the distinct ones, and each event's position among them.

    Returns:
        the distinct operands, and for each event its position among them or NONE.
    """
    places: dict[Operands, int] = {}
    position = np.full(len(events), NONE, np.int32)
    for row in rows:
        found = operands_of(events[row], names[0][names[1][row]])
        if found.dims:
            position[row] = places.setdefault(found, len(places))
    return tuple(places), position


def operands_of(event: Any, name: str) -> Operands:
    """Give what one operator was called with, as a trace file has it."""
    scalars: tuple[str, ...] = ()
    if is_modelled(name):
        scalars = tuple(map(_text, event.concrete_inputs()))
    return Operands(tuple(map(tuple, event.shapes())), tuple(event.dtypes()), scalars)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
