"""What a source computes, and whether another one computes the same.

A kernel imports this module, too: it needs torch and NumPy.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy
import torch

#: of the largest value: what results may differ by where the change chooses a dtype
TOLERANCES = {"tf32": 5e-3, "bf16": 5e-2, "float32": 1e-4}
OF_DTYPE = {torch.float64: 1e-6, torch.float16: 1e-2, torch.bfloat16: 5e-2}
_OTHER = 1e-3
#: of each element of an input, what may be lost before a cell begins: what its dtype
#: rounds to, and this at least
_INPUT_OFF = 1e-5
#: times as far from the cell as the cell with such inputs
_MOST_OFF = 4.0
#: of a result on the mean
_MOST_SHARE = 0.01
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


def round_inputs(source: str, namespace: dict[str, Any], number: int) -> None:
    """Have tensors that a source reads and never sets be off by a rounding.

    Args:
        source: the cell.
        namespace: what it reads.
        number: of the rounding; each is another one.
    """
    named = [node for node in ast.walk(ast.parse(source)) if _is_name(node)]
    bound = {node.id for node in named if not isinstance(node.ctx, ast.Load)}
    for name in sorted({node.id for node in named} - bound):
        value = namespace.get(name)
        if type(value) is torch.Tensor and value.is_floating_point():
            generator = torch.Generator(value.device).manual_seed(number)
            off = torch.empty(value.shape, device=value.device)
            most = max(_INPUT_OFF, torch.finfo(value.dtype).eps)
            off.uniform_(-most, most, generator=generator)
            off = (value.detach() * off).to(value.dtype)
            namespace[name] = (value.detach() + off).requires_grad_(value.requires_grad)


def differences(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    change: str,
    source: str,
    rounded: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    """Return the names whose values differ by more than rounding of their dtype.

    Args:
        before: what `source` gave.
        after: what its edit gave; without a result it differs.
        change: the edit's kind.
        source: the cell, which tells results from what only leads to them.
        rounded: what `source` gave with inputs that are rounded otherwise: no edit has
            to come nearer.
    """
    results = _results(source)
    return [
        name
        for name in before
        if (name in after or name in results)
        and not (name in after and _agree(before[name], after[name], change))
        and not (name in after and _is_near(name, before, after, rounded))
    ]


def _is_near(
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    rounded: Sequence[Mapping[str, Any]],
) -> bool:
    off = [_off(before[name], run[name]) for run in rounded if name in run]
    most = _MOST_OFF * max(off, default=-1.0)
    # what is chance agrees with nothing
    if most >= 0 and isinstance(before[name], torch.Tensor):
        most = min(most, _MOST_SHARE * _off(before[name], 0 * before[name]))
    return _off(before[name], after[name]) <= most


def _off(one: Any, other: Any) -> float:
    """Give how far two results are apart on the mean."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return math.inf
    if one.shape != other.shape or not one.numel():
        return math.inf
    return float((_widened(one) - _widened(other)).abs().mean())


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
        *(OF_DTYPE.get(value.dtype, _OTHER) for value in (first, second)),
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
