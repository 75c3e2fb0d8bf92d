"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
WIDTH = 64
SCALE = 1 / 8
#: half a step of float16, of a number and at its end; of float32
_UNIT, _LEAST, _UNIT_32 = 2.0**-11, 2.0**-25, 2.0**-24
#: rows whose scores are held at a time
_ROWS = 256


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw queries, keys and values."""
    shape = (sizes["heads"], sizes["n"], WIDTH)
    q, k, v = rng.standard_normal((3, *shape), np.float32)
    if values == "growing":
        # each row's maximum moves on with the keys
        q[..., 0] = 4
        k[..., 0] = np.linspace(-30, 30, sizes["n"])
    elif values == "huge":
        # whole numbers, of which scores are exact: up to some thousands
        q = rng.integers(-16, 17, shape)
        k = rng.integers(-16, 17, shape)
        q[..., :2], k[..., :2] = 64, rng.choice([-64, 0, 64], (*shape[:2], 1))
    elif values == "one_key":
        # one key that outweighs all others, in a place of each head's own
        places = rng.integers(sizes["n"], size=shape[0])
        heads = np.arange(shape[0])
        k[heads, places] = 8 * q[heads, -1]
    elif values == "even":
        # weights nearly alike: of 16 keys they add up to more than FP16 has
        q, v = q / 16, 6000 + 250 * v
    elif values == "far_below":
        # no score is near 0, where a maximum might begin
        q[..., 0], k[..., 0] = 50, -50
    return {
        name: drawn.astype(np.float16) for name, drawn in (("q", q), ("k", k), ("v", v))
    }


def _wide(given: Arrays) -> list[Any]:
    return [given[name].astype(np.float64) for name in "qkv"]


def _weights(q: Any, k: Any, first: int) -> tuple[Any, Any]:
    """Give some rows of one head: weights, the largest of them 1, and scores' sizes."""
    keys = np.arange(first + len(q))
    scores = q @ k[: len(keys)].T * SCALE
    is_seen = keys[None, :] <= first + np.arange(len(q))[:, None]
    scores = np.where(is_seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    largest = np.abs(np.where(is_seen, scores, 0)).max(axis=1, keepdims=True)
    return weights, largest


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the result in float64, some rows at a time."""
    q, k, v = _wide(given)
    out = np.empty_like(q)
    for head in range(sizes["heads"]):
        for first in range(0, sizes["n"], _ROWS):
            rows = slice(first, min(first + _ROWS, sizes["n"]))
            weights, _ = _weights(q[head, rows], k[head], first)
            seen = v[head, : weights.shape[1]]
            out[head, rows] = weights @ seen / weights.sum(axis=1, keepdims=True)
    return {"out": out}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow the roundings of scores to FP32, and of weights and result to FP16."""
    q, k, v = _wide(given)
    bound = np.empty_like(q)
    is_whole = bool((q == np.rint(q)).all() and (k == np.rint(k)).all())
    for head in range(sizes["heads"]):
        # no score's products are larger than this
        products = np.abs(q[head]) @ np.abs(k[head]).max(axis=0)[:, None] * SCALE
        for first in range(0, sizes["n"], _ROWS):
            rows = slice(first, min(first + _ROWS, sizes["n"]))
            weights, largest = _weights(q[head, rows], k[head], first)
            seen = np.abs(v[head, : weights.shape[1]])
            mass = weights.sum(axis=1, keepdims=True)
            of_scores = 8 * _UNIT_32 * largest
            if not is_whole:
                of_scores = of_scores + WIDTH * _UNIT_32 * products[rows]
            size = weights @ seen / mass
            small = _LEAST * seen.sum(axis=0) / mass
            off = 2 * _UNIT + 2 * of_scores + weights.shape[1] * _UNIT_32
            bound[head, rows] = size * off + small
    size = np.abs(right["out"])
    return {"out": 1.05 * (bound + size * _UNIT) + 2 * _LEAST}
