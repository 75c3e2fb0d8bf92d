"""Values of the lab, and what a right operator does."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
UNIT = 2.0**-24
EPS = 2.0**-16


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw rows, their weights, and gradients of the output."""
    rows, width = sizes["rows"], sizes["width"]
    x = rng.standard_normal((rows, width))
    weight = rng.uniform(0.5, 2, width) * rng.choice([-1, 1], width)
    grad = rng.standard_normal((rows, width))
    if values == "scaled":
        x *= 2.0 ** rng.integers(-4, 5, (rows, 1))
    elif values == "small":
        # eps is then as large as the mean square
        x *= 2.0**-8
    given = {"x": x, "weight": weight, "grad": grad}
    return {
        **{name: array.astype(np.float32) for name, array in given.items()},
        "eps": EPS,
    }


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Compute forward and backward in float64."""
    return {name: right for name, (right, _) in _computed(given, sizes).items()}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow sums in float32 in any order."""
    return {name: off for name, (_, off) in _computed(given, sizes).items()}


def _computed(given: Arrays, sizes: dict[str, int]) -> dict[str, tuple[Any, Any]]:
    """Give each output, with how far roundings may move it."""
    rows, width = sizes["rows"], sizes["width"]
    x, weight, grad = (np.float64(given[name]) for name in ("x", "weight", "grad"))
    rstd = 1 / np.sqrt((x * x).mean(1, keepdims=True) + given["eps"])
    normal, part = x * rstd, grad * weight
    along = (part * normal).mean(1, keepdims=True)
    sizes_of = np.abs(part) + np.abs(normal) * np.abs(part * normal).mean(
        1, keepdims=True
    )
    # a sum of n products, and a handful of roundings of what goes into it and comes out
    row_unit, column_unit = (2 * width + 16) * UNIT, (rows + 2 * width + 16) * UNIT
    facts = [2 * rows, 2 * width + 1, 2 * width + 1, 1, 1, 1, 1]
    return {
        "out": (normal * weight, row_unit * np.abs(normal * weight)),
        "grad_x": (rstd * (part - normal * along), row_unit * rstd * sizes_of),
        "grad_weight": (
            (grad * normal).sum(0),
            column_unit * np.abs(grad * normal).sum(0),
        ),
        "facts": (np.array(facts, np.int32), 0.0),
    }
