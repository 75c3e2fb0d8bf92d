"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw small whole numbers, of which every sum is exact."""
    shape = sizes["chunks"], sizes["n"]
    x = rng.integers(-8, 9, shape)
    if values == "by_chunk":
        # each chunk has a number of its own, so that a wrong chunk shows
        first = rng.integers(-8, 0)
        x = np.broadcast_to(first + np.arange(shape[0])[:, None] % 16, shape)
    return {"x": np.ascontiguousarray(x, np.float32)}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the exact result."""
    made = 2 * given["x"].astype(np.float64) + 1
    out = made * made + made
    return {"out": out, "report": out.sum(axis=1)}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: whole numbers, and sums of them below 2**24."""
    return {"out": 0.0, "report": 0.0}
