"""What a source computes, and whether another one computes the same.

A kernel imports this module, too: it needs torch and NumPy.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, TypeGuard

import numpy
import torch

#: of the largest value: what results may differ by where the change chooses a dtype
TOLERANCES = {"tf32": 5e-3, "bf16": 5e-2, "float32": 1e-4}
_OF_DTYPE = {torch.float64: 1e-6, torch.float16: 1e-2, torch.bfloat16: 5e-2}
_OTHER = 1e-3
#: what the last expression gives
SHOWN = "_"
#: values in lists and mappings are compared to this depth
_MOST_LEVELS = 4


def outputs(source: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run a source; return copies of what it names then, and of what it shows.

    A model's value is that of its parameters and buffers, an optimizer's that of what
    it updates, and that of an object of the cell's own class its attributes.
    """
    # what has such a name is thrown away
    names = {
        node.id
        for node in ast.walk(ast.parse(source))
        if _is_name(node) and not node.id.startswith("_")
    }
    tree = ast.parse(source)
    last, values = tree.body[-1], dict[str, Any]()
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "cell", "exec"), namespace)
    if isinstance(last, ast.Expr):
        shown = compile(ast.Expression(last.value), "cell", "eval")
        values[SHOWN] = eval(shown, namespace)
    values |= {name: namespace[name] for name in names & namespace.keys()}
    return {name: _copy(value) for name, value in values.items()}


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], change: str, source: str
) -> list[str]:
    """Return the names whose values differ by more than rounding of their dtype.

    Args:
        before: what `source` gave.
        after: what its edit gave; without a result it differs.
        change: the edit's kind.
        source: the cell, which tells results from what only leads to them.
    """
    results = _results(source)
    return [
        name
        for name in before
        if (name in after or name in results)
        and not (name in after and _agree(before[name], after[name], change))
    ]


def _results(source: str) -> set[str]:
    """Return the names that a source sets, and which nothing after that reads."""
    last_set, last_read = dict[str, tuple[int, int]](), dict[str, tuple[int, int]]()
    for node in ast.walk(ast.parse(source)):
        is_simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
        for part in ast.walk(node) if is_simple else [node]:
            if not _is_name(part):
                continue
            if isinstance(part.ctx, ast.Store):
                # what is on the right of a statement is read before
                ended = (
                    getattr(node, "end_lineno", 0),
                    getattr(node, "end_col_offset", 0),
                )
                last_set[part.id] = max(ended, last_set.get(part.id, ended))
            else:
                begun = part.lineno, part.col_offset
                last_read[part.id] = max(begun, last_read.get(part.id, begun))
    return {
        name
        for name in last_set
        if last_set[name] > last_read.get(name, (0, 0)) and not name.startswith("_")
    }


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _copy(value: Any, level: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, torch.nn.Module):
        return _copy(dict(value.state_dict()))
    if isinstance(value, torch.optim.Optimizer):
        return _copy([group["params"] for group in value.param_groups], level)
    if hasattr(value, "dtype") and hasattr(value, "__array__"):
        # of NumPy, CuPy or JAX
        return torch.from_numpy(numpy.array(getattr(value, "get", lambda: value)()))
    if level < _MOST_LEVELS and isinstance(value, list | tuple):
        return [_copy(one, level + 1) for one in value]
    if level < _MOST_LEVELS and isinstance(value, dict):
        return {key: _copy(one, level + 1) for key, one in value.items()}
    if level < _MOST_LEVELS and _is_of_cell(value):
        return _copy(vars(value), level)
    return value


def _is_of_cell(value: Any) -> bool:
    """Tell whether an object is of a class of the cell, which each run makes anew."""
    return type(value).__module__ == "__main__" and hasattr(value, "__dict__")


def _agree(one: Any, other: Any, change: str) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _agree(*pair, change) for pair in zip(one, other, strict=True)
        )
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _agree(one[key], other[key], change) for key in one
        )
    if not _is_value(one) or not _is_value(other):
        # a loader, a module: nothing that rounding is of
        return type(one) is type(other)
    first, second = torch.as_tensor(one), torch.as_tensor(other)
    if first.shape != second.shape:
        return False
    tolerance = max(
        TOLERANCES.get(change, 0.0),
        *(_OF_DTYPE.get(value.dtype, _OTHER) for value in (first, second)),
    )
    first, second = _widened(first), _widened(second)
    finite = first[first.isfinite()].abs()
    largest = float(finite.max()) if len(finite) else 1.0
    return torch.allclose(
        first, second, rtol=0.0, atol=tolerance * max(largest, 1e-30), equal_nan=True
    )


def _widened(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.cdouble()) if value.is_complex() else value.double()


def _is_value(value: Any) -> bool:
    return isinstance(value, torch.Tensor | int | float | complex)
