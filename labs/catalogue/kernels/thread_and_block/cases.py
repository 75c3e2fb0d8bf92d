"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw x and y."""
    n = sizes["n"]
    x, y = rng.standard_normal((2, n), np.float32) * np.float32(3)
    if values == "special":
        kinds = np.array(
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42, -1e-42], np.float32
        )
        x, y = rng.choice(kinds, n), rng.choice(kinds, n)
    elif values == "cancelling":
        # sums near zero, of both signs
        y = -x + rng.choice(np.array([-1e-6, 0, 1e-6], np.float32), n)
    return {"x": x, "y": y}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the exact result."""
    with np.errstate(invalid="ignore"):
        total = given["x"] + given["y"]
    return {"out": np.where(total < 0, np.float32(0), total)}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: each element is one rounded addition."""
    return {"out": 0.0}
