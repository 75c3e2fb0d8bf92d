"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw every input and scalar, with nothing but `rng` to choose."""
    n = sizes["n"]
    x = rng.standard_normal(n, np.float32)
    if values == "special":
        kinds = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-42], np.float32)
        x = rng.choice(kinds, n)
    return {"x": x, "factor": np.float32(rng.uniform(-4, 4))}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give every output: exact, or in float64."""
    return {"out": given["x"] * given["factor"]}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Say how far each output may be off: a number, or one for each element."""
    return {"out": 0.0}
