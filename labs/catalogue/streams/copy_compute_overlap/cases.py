"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw whole numbers, so that every order of a sum gives the same.

    A sum is at most 4095 * width: float32 holds it exactly below a width of 4097. The
    numbers have more bits than TF32 keeps.
    """
    shape = sizes["chunks"] * sizes["rows"], sizes["width"]
    source = rng.integers(-4095, 4096, shape, np.int16).astype(np.float32)
    if values == "alike":
        # a row's numbers say only where it lies
        source[:] = (np.arange(shape[0]) % 4093 + 1).astype(np.float32)[:, None]
    square = sizes["width"], sizes["width"]
    weights = rng.integers(-1, 2, square, np.int8).astype(np.float32)
    return {"source": source, "weights": weights}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the exact result."""
    return {"out": np.maximum(given["source"] @ given["weights"], np.float32(0))}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: all sums are whole numbers that float32 holds."""
    return {"out": 0.0}
