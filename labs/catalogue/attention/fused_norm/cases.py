"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
EPSILON = 1e-6
#: half a step of float16, of a number and at its end
_UNIT, _LEAST = 2.0**-11, 2.0**-25


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw both addends and the weights."""
    rows, width = sizes["rows"], sizes["width"]
    x, residual = rng.standard_normal((2, rows, width), np.float32)
    weight = 1 + rng.standard_normal(width, np.float32) / 4
    if values == "large":
        # squares from 65,536 on are infinite in float16
        x, residual = x * 900 + 300, residual * 3000
    elif values == "small":
        scale = rng.choice([0, 1e-4, 3e-4, 1e-3, 1e-2], (rows, 1))
        x, residual = x * scale, residual * scale
    elif values == "spike":
        # nearly all of the sum is in one number, often the last one of a row
        places = np.where(
            rng.random(rows) < 0.5, width - 1, rng.integers(width, size=rows)
        )
        x[np.arange(rows), places] = 2000
    elif values == "special":
        # one row's NaN or infinity is no other row's
        kinds = np.array([np.nan, np.inf, -np.inf], np.float32)
        hit = np.flatnonzero(rng.random(rows) < 0.4)
        x[hit, rng.integers(width, size=len(hit))] = rng.choice(kinds, len(hit))
    return {
        "x": np.where(np.isfinite(x), _clipped(x), x).astype(np.float16),
        "residual": _clipped(residual).astype(np.float16),
        "weight": weight.astype(np.float16),
    }


def _clipped(drawn: Any) -> Any:
    """Keep numbers so small that two of them add up to one of float16."""
    return np.clip(drawn, -30_000, 30_000)


def _total(given: Arrays) -> Any:
    """Add exactly, and round once."""
    wide = given["x"].astype(np.float64) + given["residual"].astype(np.float64)
    return wide.astype(np.float16)


def _scale(total: Any) -> Any:
    """Give 1 / sqrt(mean of squares + EPSILON) of each row."""
    with np.errstate(invalid="ignore"):
        return 1 / np.sqrt(np.square(total).mean(axis=1, keepdims=True) + EPSILON)


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the total, rounded, and the result in float64."""
    total = _total(given)
    wide, weight = total.astype(np.float64), given["weight"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return {"total": total, "out": wide * _scale(wide) * weight}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow the roundings that `lab.toml` names; NaN is compared as such.

    Who takes the mean and the factor of a total that is not rounded yet is right, too.
    """
    bound = right["total"].astype(np.float64)
    scale = _scale(bound)
    # in place: the timed call has millions of elements
    with np.errstate(invalid="ignore"):
        np.abs(bound, out=bound)
        bound *= _UNIT
        np.maximum(bound, _LEAST, out=bound)
        bound *= scale
        bound *= np.abs(given["weight"].astype(np.float64))
        size = np.abs(right["out"])
        size *= 2 * _UNIT + sizes["width"] * 2.0**-24
        bound += size
        bound += 2 * _LEAST
        bound *= 1.05
    bound[~np.isfinite(bound)] = 0.0
    return {"total": 0.0, "out": bound}
