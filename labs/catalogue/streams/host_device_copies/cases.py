"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_BLOCK = 256


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw a recording, gains, and which part of it is wanted."""
    channels = sizes["wanted"] + sizes["spare"]
    shape = channels, _BLOCK * (sizes["blocks"] + sizes["skipped"])
    samples = rng.integers(-128, 128, shape, np.int8)
    if values == "extreme":
        samples = rng.choice(np.array([-128, -127, 0, 127], np.int8), shape)
    elif values == "spikes":
        # silence, but for the last sample of each block
        samples[:] = 0
        samples[:, _BLOCK - 1 :: _BLOCK] = rng.integers(
            -128, 128, (channels, shape[1] // _BLOCK), np.int8
        )
    return {
        "samples": samples,
        "gains": rng.standard_normal(channels, np.float32),
        "first": int(rng.integers(0, sizes["spare"] + 1)),
        "begin": int(rng.integers(0, _BLOCK * sizes["skipped"] + 1)),
    }


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the exact result."""
    rows = slice(given["first"], given["first"] + sizes["wanted"])
    length = _BLOCK * sizes["blocks"]
    piece = given["samples"][rows, given["begin"] : given["begin"] + length]
    blocks = piece.reshape(sizes["wanted"], sizes["blocks"], _BLOCK)
    highest = blocks.max(axis=2).astype(np.float32)
    lowest = blocks.min(axis=2).astype(np.float32)
    return {"out": np.maximum(highest, -lowest) * given["gains"][rows, None]}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow nothing: each number is one rounded product."""
    return {"out": 0.0}
