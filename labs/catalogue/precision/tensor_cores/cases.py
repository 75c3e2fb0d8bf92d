"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_EPSILON = 2.0**-23
_EXACT = 2**24


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw both matrices; all but "random" are whole numbers."""
    m, n, k = sizes["m"], sizes["n"], sizes["k"]
    # more of them above zero, so that sums soon want more bits than FP16 has
    a = rng.integers(-3, 10, (m, k)).astype(np.float16)
    b = rng.integers(-3, 10, (k, n)).astype(np.float16)
    half = k // 2
    if values == "random":
        a = rng.standard_normal((m, k)).astype(np.float16)
        b = rng.standard_normal((k, n)).astype(np.float16)
    elif values == "saturating":
        # 16 products are more than FP16 holds; the second half takes them back
        a = np.full((m, k), 64, np.float16)
        b = np.full((k, n), 64, np.float16)
        b[half:] = -64
        b -= rng.integers(0, 2, (k, n)).astype(np.float16)
    elif values == "cancelling":
        # numbers of 10 bits: bfloat16 would lose two of them
        a = rng.integers(513, 1024, (m, k)).astype(np.float16)
        b = rng.integers(1, 4, (k, n)).astype(np.float16)
        b[half : 2 * half] = -b[:half]
        a[:, half : 2 * half] = a[:, :half] + 1
    return {"a": a, "b": b}


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
    return {"c": sizes["k"] * _EPSILON * size}
