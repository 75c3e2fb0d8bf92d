"""Values of the lab, and what ranks must have together: what one device computes."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
UNIT = 2.0**-24
EPS = 1e-5
#: of a number in float32
_FLOAT_BYTES = 4


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw a layer, its input and gradient, and the gradients of each replica."""
    tokens, hidden, inner = sizes["tokens"], sizes["hidden"], sizes["inner"]
    count = 2 * hidden * inner + 2 * hidden
    x = rng.standard_normal((tokens, hidden))
    if values == "scaled":
        x *= 2.0 ** rng.integers(-2, 3, (tokens, 1))
    given = {
        "x": x,
        "scale": rng.uniform(0.5, 2, hidden) * rng.choice([-1, 1], hidden),
        "w1": rng.standard_normal((hidden, inner)) / hidden**0.5,
        "w2": rng.standard_normal((inner, hidden)) / inner**0.5,
        "bias": rng.standard_normal(hidden),
        "grad": rng.standard_normal((tokens, hidden)),
        "replica_grads": rng.standard_normal((sizes["ranks"], count)),
    }
    whole_bytes = _FLOAT_BYTES * count
    # from a bucket for each gradient to one for all
    bucket_bytes = {
        "random": int(rng.integers(whole_bytes // 4, whole_bytes)),
        "scaled": whole_bytes // 2 + 8 * hidden,
        "one_bucket": whole_bytes,
        "small_buckets": _FLOAT_BYTES * hidden,
    }[values]
    arrays = {name: array.astype(np.float32) for name, array in given.items()}
    return {**arrays, "bucket_bytes": bucket_bytes}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Compute the layer once on one device, in float64, forward and backward."""
    return {name: right for name, (right, _) in _computed(given, sizes).items()}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow sums in float32 in any order."""
    return {name: off for name, (_, off) in _computed(given, sizes).items()}


def _computed(given: Arrays, sizes: dict[str, int]) -> dict[str, tuple[Any, Any]]:
    """Give each output, with how far roundings may move it."""
    ranks = sizes["ranks"]
    x, scale, w1, w2, bias, grad = (
        np.float64(given[name]) for name in ("x", "scale", "w1", "w2", "bias", "grad")
    )
    rstd = 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPS)
    normal = x * rstd
    unsplit = _layer(x, w1, w2, bias, grad)
    split = _layer(normal * scale, w1, w2, bias, grad)
    part = split["grad_x"] * scale
    along = (part * normal).mean(1, keepdims=True)
    split["grad_scale"] = (split["grad_x"] * normal).sum(0)
    split["grad_x"] = rstd * (part - normal * along)
    # the same with every term as large as it is, which no sum is beyond
    sizes_of = {name: np.abs(given[name]) for name in ("w1", "w2", "bias", "grad")}
    most_unsplit = _layer(np.abs(x), **sizes_of)
    most_split = _layer(np.abs(normal * scale), **sizes_of)
    most_part = most_split["grad_x"] * np.abs(scale)
    most_along = (most_part * np.abs(normal)).mean(1, keepdims=True)
    most_split["grad_scale"] = (most_split["grad_x"] * np.abs(normal)).sum(0)
    most_split["grad_x"] = rstd * (most_part + np.abs(normal) * most_along)
    # sums of so many products, some behind one another
    unit = (4 * sizes["hidden"] + 3 * sizes["inner"] + sizes["tokens"] + 64) * UNIT
    whole = {"out", "grad_x", "grad_bias", "grad_scale"}
    of_each_rank = {
        "tp": whole & set(unsplit),
        "sp": {"grad_bias", "grad_scale"},
    }
    computed = {}
    for short, right, most in (
        ("tp", unsplit, most_unsplit),
        ("sp", split, most_split),
    ):
        for name, array in right.items():
            off = unit * most[name]
            if name in of_each_rank[short]:
                array, off = (np.stack([one] * ranks) for one in (array, off))
            computed[f"{short}_{name}"] = array, off
    rows = np.array([len(one) for one in np.array_split(np.arange(len(x)), ranks)])
    weights, replicas = rows[:, None] / len(x), np.float64(given["replica_grads"])
    average = np.stack([(weights * replicas).sum(0)] * ranks)
    off = (ranks + 16) * UNIT * (weights * np.abs(replicas)).sum(0)
    computed["dp_grads"] = average, np.stack([off] * ranks)
    return computed


def _layer(x: Any, w1: Any, w2: Any, bias: Any, grad: Any) -> Arrays:
    """Give the output of one layer, and the gradients of all that goes in."""
    positive = np.maximum(x @ w1, 0)
    grad_h = 2 * positive * (grad @ w2.T)
    return {
        "out": positive**2 @ w2 + bias,
        "grad_x": grad_h @ w1.T,
        "grad_w1": x.T @ grad_h,
        "grad_w2": (positive**2).T @ grad,
        "grad_bias": grad.sum(0),
    }
