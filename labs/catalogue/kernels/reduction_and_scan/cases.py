"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_EPSILON = 2.0**-24
#: whole numbers below this are exact in FP32
_EXACT = 2**24
_MOST_SUM = 2**31 - 1


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw the floats and the whole numbers."""
    n = sizes["n"]
    # as large as 32 bits hold the sums of, which floats and 16 bits do not
    most = _MOST_SUM // n
    k = rng.integers(-most, most, n, endpoint=True).astype(np.int32)
    x = rng.integers(-100, 100, n).astype(np.float32)
    if values == "random":
        x = rng.standard_normal(n).astype(np.float32)
    elif values == "cancelling":
        x = (rng.standard_normal(n) * 1e6).astype(np.float32)
        x[n // 2 : 2 * (n // 2)] = -x[: n // 2]
        x[-1] += np.float32(1)
    elif values == "spike_at_the_end":
        x[:], k[:] = 0, 0
        x[-1], k[-1] = 77777, 31337
    elif values == "negative":
        # a sum that begins at zero is right; a largest element that does is not
        x, k = -np.abs(x) - 1, -np.abs(k)
    return {"x": x, "k": k}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the sum in float64, and the exact running sums."""
    return {
        "total": given["x"].sum(dtype=np.float64),
        "prefix": np.cumsum(given["k"], dtype=np.int64),
    }


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Bound the sum by the sizes of what is added, unless it is exact."""
    x = given["x"].astype(np.float64)
    size = np.abs(x).sum()
    is_exact = bool((x == np.rint(x)).all()) and size < _EXACT
    return {
        "total": 0.0 if is_exact else sizes["n"] * _EPSILON * size,
        "prefix": 0.0,
    }
