"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_EPSILON = 2.0**-24


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw rows and weights."""
    n, k = sizes["n"], sizes["k"]
    x, w = (rng.standard_normal(shape) for shape in ((k, n), (k, 32)))
    if values == "whole":
        # nothing is lost of small whole numbers, in whatever order they are added
        x, w = np.rint(4 * x), np.rint(4 * w)
    return {"x": x.astype(np.float32), "w": w.astype(np.float32)}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the sums in float64."""
    return {"out": given["w"].astype(np.float64).T @ given["x"].astype(np.float64)}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Bound each sum by its products' sizes; whole numbers are exact."""
    x, w = (given[name].astype(np.float64) for name in "xw")
    if (x == np.rint(x)).all() and (w == np.rint(w)).all():
        return {"out": 0.0}
    return {"out": sizes["k"] * _EPSILON * (np.abs(w).T @ np.abs(x))}
