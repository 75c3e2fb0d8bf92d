"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw bytes below `bins`."""
    n, bins = sizes["n"], sizes["bins"]
    x = rng.integers(bins, size=n)
    if values == "one_bin":
        x = np.full(n, rng.integers(bins))
    elif values == "last_bin":
        x = np.full(n, bins - 1)
    elif values == "both_ends":
        # neither 0 nor the last bin may be used for what lies behind the end
        x = rng.choice([0, bins - 1], n)
    elif values == "sorted":
        # neighbours have the same byte, and meet in one counter
        x = np.sort(x)
    elif values == "skewed":
        x = np.minimum(rng.geometric(0.2, n) - 1, bins - 1)
    return {"x": x.astype(np.uint8)}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Count in 64 bits."""
    return {"counts": np.bincount(given["x"], minlength=sizes["bins"])}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: counts are whole numbers."""
    return {"counts": 0.0}
