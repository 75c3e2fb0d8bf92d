"""What a cell's source works on: shapes and dtypes of the names that it reads.

The same source takes another time with another batch or model, so executions count
only for a profile of the same inputs.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

#: of a longer source only the text counts: it is parsed before each execution
_MOST_CHARACTERS = 20_000
_MOST_NAMES = 50
_MOST_TEXT = 200
#: whose values are asked; others may do anything when they are
_ARRAYS = ("torch", "numpy", "cupy", "jax", "jaxlib")


def inputs_of(source: str, names: Mapping[str, Any]) -> str:
    """Describe the values that a source reads and does not set itself.

    Nothing of them is computed or called: a tensor or array is its type, shape, dtype
    and device, a module or optimizer itself. All else is left out, as counters and
    results change with each execution.
    """
    if len(source) > _MOST_CHARACTERS:
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # with IPython's own lines, or no Python at all
        return ""
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in uses if isinstance(node.ctx, ast.Load)}
    read -= {node.id for node in uses if not isinstance(node.ctx, ast.Load)}
    known = sorted(name for name in read if name in names)[:_MOST_NAMES]
    described = ((name, _described(names[name])) for name in known)
    return ";".join(f"{name}={text}" for name, text in described if text)


def _described(value: Any) -> str:
    kind = type(value)
    if hasattr(kind, "state_dict"):
        return str(id(value))
    if kind.__module__.partition(".")[0] not in _ARRAYS:
        return ""
    try:
        shape, dtype = tuple(value.shape), value.dtype
        device = getattr(value, "device", "")
    except Exception:  # noqa: BLE001  # not an array, or one that is deleted
        return ""
    return f"{kind.__name__} {shape} {dtype} {device}"[:_MOST_TEXT]
