"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
#: of a number between two codes, how near the middle either is right
_NEAR = 1e-4
#: half a step of float16, of a number and at its end
_UNIT, _LEAST = 2.0**-11, 2.0**-24
_MOST = 127


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw activations, weights as codes, and a threshold."""
    tokens, features, outputs = (
        sizes[name] for name in ("tokens", "features", "outputs")
    )
    threshold = float(rng.choice([4.0, 6.0, 8.0]))
    x = np.clip(rng.standard_normal((tokens, features)), -3.9, 3.9)
    weight = rng.integers(-_MOST, _MOST + 1, (outputs, features))
    if values == "outliers":
        count = max(1, features // 40)
        for column in rng.choice(features, count, replace=False):
            row = rng.integers(tokens)
            x[:, column] *= 2
            x[row, column] = rng.choice([-10, 10]) * threshold
        # exactly at the threshold, which is one, too
        x[rng.integers(tokens), rng.integers(features)] = -threshold
    elif values == "small_rows":
        x[rng.random(tokens) < 0.4] = 0
        x[rng.random(tokens) < 0.4] *= 1e-6
    elif values == "huge_row":
        # every column has an outlier then, or nearly
        x[rng.integers(tokens)] *= 3000
    elif values == "long":
        # sums far beyond what float16 holds, before they are scaled
        x = np.abs(x) + 0.5
        weight = np.abs(weight)
    scales = np.abs(rng.standard_normal(outputs)) + 0.5
    return {
        "x": x.astype(np.float16),
        "weight": weight.astype(np.int8),
        "weight_scales": (scales / np.sqrt(features)).astype(np.float32),
        "threshold": threshold,
    }


def _parts(given: Arrays) -> dict[str, Any]:
    """Compute everything in float64, in which codes and their sums are exact."""
    x = given["x"].astype(np.float64)
    weight = given["weight"].astype(np.float64)
    w = weight * _w_scales(given)[:, None] / _MOST
    is_outlier = (np.abs(x) >= given["threshold"]).any(axis=0)
    kept = np.where(is_outlier, 0.0, x)
    scales = np.abs(kept).max(axis=1)
    steps = np.divide(scales, _MOST)[:, None]
    exact = np.divide(kept, steps, out=np.zeros_like(kept), where=steps > 0)
    is_near = np.abs(np.abs(exact - np.trunc(exact)) - 0.5) < _NEAR
    codes = np.rint(exact)
    x_out, w_out = x[:, is_outlier], w[:, is_outlier]
    return {
        "codes": codes,
        "scales": scales,
        "is_near": is_near,
        "whole": (codes @ weight.T) * steps * (_w_scales(given) / _MOST),
        "apart": x_out @ w_out.T,
        "apart_size": np.abs(x_out) @ np.abs(w_out).T,
        "near_size": _near_size(is_near * steps, w),
    }


def _near_size(steps: Any, w: Any) -> Any:
    """Say how far either code in the middle between two may move each result."""
    # few columns have any: of timed sizes a third
    columns = steps.any(axis=0)
    return steps[:, columns] @ np.abs(w[:, columns]).T


def _w_scales(given: Arrays) -> Any:
    """Give the scales of the weights in float64."""
    return given["weight_scales"].astype(np.float64)


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give codes, scales and the result."""
    parts = _parts(given)
    return {
        "codes": parts["codes"].astype(np.int8),
        "scales": parts["scales"],
        "out": parts["whole"] + parts["apart"],
    }


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow either code in the middle between two, and roundings to FP16.

    What is rounded has those other codes in it, so it may be larger than what is right:
    many times as large where that is nearly zero.
    """
    parts = _parts(given)
    whole, out = (
        np.abs(right_size) + parts["near_size"]
        for right_size in (parts["whole"], right["out"])
    )
    rounded = whole + np.abs(parts["apart"]) + out
    return {
        "codes": parts["is_near"].astype(np.float64),
        "scales": 0.0,
        "out": 1.1 * _UNIT * rounded
        + 2 * _UNIT * parts["apart_size"]
        + parts["near_size"]
        + 4 * _LEAST,
    }
