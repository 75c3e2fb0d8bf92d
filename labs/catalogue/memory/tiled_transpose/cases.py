"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw the matrix; every element is another one, so that none can be mistaken."""
    count = sizes["h"] * sizes["w"]
    x = rng.permutation(count).astype(np.float32) + np.float32(1)
    if values == "special":
        kinds = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-42], np.float32)
        places = rng.random(count) < 0.2
        x = np.where(places, rng.choice(kinds, count), x)
    return {"x": x.reshape(sizes["h"], sizes["w"])}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the transpose."""
    return {"out": given["x"].T}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: numbers are moved, not computed."""
    return {"out": 0.0}
