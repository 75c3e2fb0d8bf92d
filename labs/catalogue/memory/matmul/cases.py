"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_EPSILON = 2.0**-24
_EXACT = 2**24


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw both matrices."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    a = rng.integers(-9, 10, (m, k)).astype(np.float32)
    b = rng.integers(-9, 10, (k, n)).astype(np.float32)
    if values == "random":
        a = rng.standard_normal((m, k)).astype(np.float32)
        b = rng.standard_normal((k, n)).astype(np.float32)
    elif values == "cancelling":
        # what FP16 or TF32 would lose: 2049 needs 12 bits
        a = rng.choice(np.array([2049, -2049, 1], np.float32), (m, k))
        b = rng.choice(np.array([1, -1, 0], np.float32), (k, n))
    elif values == "between":
        a, b = _between(rng, (m, k)), _between(rng, (k, n))
    return {"a": a, "b": b}


def _between(rng: np.random.Generator, shape: tuple[int, int]) -> Any:
    """Draw numbers from 1 to 4 that TF32, BF16 and FP16 all round down."""
    high = rng.integers(0x3F800000 >> 13, 0x40800000 >> 13, shape, np.uint32)
    low = rng.integers(0x0800, 0x1000, shape, np.uint32)
    return (high << np.uint32(13) | low).view(np.float32)


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the product in float64."""
    return {"c": given["a"].astype(np.float64) @ given["b"].astype(np.float64)}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Bound each element by its products' sizes; whole numbers are exact."""
    a, b = (given[name].astype(np.float64) for name in "ab")
    size = np.abs(a) @ np.abs(b)
    whole = bool((a == np.rint(a)).all() and (b == np.rint(b)).all())
    if whole and size.max(initial=0) < _EXACT:
        return {"c": 0.0}
    # one rounding more than a plain sum has, for one that compensates
    return {"c": (sizes["k"] + 1) * _EPSILON * size}
