"""Reads what operators were called with from torch's raw events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from warpbook_profiler.events.columns import NONE, Int32s, Operands, lists_of
from warpbook_profiler.facts.flops import is_modelled

#: scalars tell whether they add to what is there, take statistics of a batch, along
#: which axis they work, or what they write
_FLAGGED = frozenset(
    "aten::index_put_ aten::_index_put_impl_ aten::native_batch_norm "
    "aten::cudnn_batch_norm aten::miopen_batch_norm aten::sum aten::sort "
    "aten::linalg_vector_norm aten::pow aten::scatter_".split()
)
#: torch's type of an argument whose sizes have an answer of their own
_LIST = "TensorList"


def read_operands(
    events: Sequence[Any], rows: Iterable[int], names: tuple[tuple[str, ...], Int32s]
) -> tuple[tuple[Operands, ...], Int32s]:
    """Read the operands of operators.

    Args:
        events: all of them.
        rows: the operators that matter; a microsecond or two for each.
        names: the distinct ones, and each event's position among them.

    Returns:
        the distinct operands, and for each event its position among them or NONE.
    """
    has_scalars = [is_modelled(name) or name in _FLAGGED for name in names[0]]
    places: dict[tuple[Any, ...], int] = {}
    position = np.full(len(events), NONE, np.int32)
    named = names[1].tolist()
    for row in rows:
        name = named[row]
        key = _key(events[row], has_scalars[name])
        position[row] = places.setdefault(key, len(places))
    return tuple(map(_operands, places)), position


def operands_of(event: Any, name: str) -> Operands:
    """Give what one operator was called with, as a trace file has it."""
    return _operands(_key(event, is_modelled(name) or name in _FLAGGED))


def _key(event: Any, has_scalars: bool) -> tuple[Any, ...]:
    scalars = map(str, event.concrete_inputs()) if has_scalars else ()
    dtypes = tuple(event.dtypes())
    lists: tuple[Any, ...] = ()
    if _LIST in dtypes and hasattr(event, "structured_input_shapes"):
        lists = lists_of(event.structured_input_shapes())
    return tuple(map(tuple, event.shapes())), dtypes, tuple(scalars), lists


def _operands(key: tuple[Any, ...]) -> Operands:
    dims, dtypes, scalars, lists = key
    return Operands(
        dims,
        dtypes,
        tuple("" if scalar == "None" else scalar for scalar in scalars),
        lists,
    )
