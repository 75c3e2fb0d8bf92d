"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
#: two roundings of FP32, and a little for subnormal reciprocals
_OFF = 2.0**-22


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw small whole numbers, whose sums are exact in any order."""
    shape = sizes["steps"], sizes["rows"], sizes["features"]
    x = rng.integers(-4, 5, shape).astype(np.float32)
    w = rng.integers(-3, 4, (sizes["features"], sizes["outputs"]))
    if values == "dead":
        # sums of these are at most zero
        w = -np.abs(w)
        x[rng.random(sizes["steps"]) < 0.5] = np.abs(rng.integers(-4, 5, shape[1:]))
    elif values == "ones":
        # what is above zero is 1, and nothing is divided
        x = np.eye(sizes["features"], dtype=np.float32)[
            rng.integers(0, sizes["features"], shape[:2])
        ]
        w = np.sign(w)
    return {"x": x, "w": w.astype(np.float32)}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Compute it in float64."""
    h = np.maximum(given["x"].astype(np.float64) @ given["w"].astype(np.float64), 0)
    best = h.max(axis=(1, 2))
    return {"best": best, "y": h / np.where(best > 0, best, 1)[:, None, None]}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow a product with a reciprocal in place of a quotient."""
    return {"best": 0.0, "y": _OFF * right["y"]}
