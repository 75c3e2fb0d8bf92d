"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw a table, and which of its rows are wanted."""
    rows, picked = sizes["rows"], sizes["picked"]
    table = rng.standard_normal((rows, sizes["width"]), np.float32)
    which = rng.integers(0, rows, picked)
    if values == "repeated":
        which = rng.choice(which[:2], picked)
    elif values == "edges":
        table[rng.random(rows) < 0.3] = 0
        which[: picked // 2] = rng.choice([0, rows - 1], picked // 2)
    return {"table": table, "which": which}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the exact result."""
    wanted = given["table"][given["which"]]
    largest = np.abs(wanted).max(axis=1, keepdims=True)
    return {"out": wanted / np.where(largest == 0, np.float32(1), largest)}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: each number is one rounded quotient."""
    return {"out": 0.0}
