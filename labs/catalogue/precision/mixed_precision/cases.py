"""Values of the lab, what is right, and how far half precision may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]

#: half a step of float16 relative to a number, and the same below its normal range
UNIT, LEAST = 2.0**-11, 2.0**-25
#: the derivative of the loss by a prediction, for an error of 1: float16 has no such
#: number, and 65,536 times it is well within its range
SLOPE = 2.0**-27
#: the scale that a training begins with, and what is left after a step was skipped
FIRST_SCALE, SCALE = 2.0**16, 2.0**15
#: the largest float16
MOST = 65504.0
#: no float16; and a target whose gradient overflows with the first scale, and not with
#: the second: a scale kept from call to call is found out in the second
GLITCH, OUTLIER = 1e9, MOST / FIRST_SCALE / SLOPE * 4 / 3
#: so that no gradient of the hidden layer does, either: training adds less than 1/2
MOST_TO_OUTPUT = 0.75
#: so many standard deviations are allowed
DEVIATIONS = 8


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw batches that another network has labelled, and weights to begin with."""
    batch, features, hidden = sizes["batch"], sizes["features"], sizes["hidden"]
    outputs, steps = sizes["outputs"], sizes["steps"]

    def layer(rows: int, columns: int) -> Any:
        return rng.standard_normal((rows, columns)) / np.sqrt(columns)

    x = rng.standard_normal((steps, batch, features))
    y = np.tanh(x @ layer(hidden, features).T) @ layer(outputs, hidden).T
    w1, w2 = layer(hidden, features), layer(outputs, hidden)
    w2 = np.clip(w2, -MOST_TO_OUTPUT, MOST_TO_OUTPUT)
    given: Arrays = {
        "x": x.astype(np.float32),
        "y": y.astype(np.float32),
        "w1": w1.astype(np.float32),
        "w2": w2.astype(np.float32),
        "weight": SLOPE / 2,
    }
    largest = max(
        float(np.abs(slope).max())
        for one in zip(given["x"], given["y"], strict=True)
        for slope in _gradients(*one, w1, w2)
    )
    # a third of the largest gradient: the limit is met in many steps
    given["limit"] = float(np.float32(largest / 3))
    # a step moves a weight by a hundredth of its size or so
    given["rate"] = float(np.float32(2.0**-5 / np.sqrt(hidden) / (largest / 3)))
    any_step = int(rng.integers(steps))
    if values == "glitch":
        _spoil(given["x"][any_step], GLITCH, rng)
    elif values == "outlier":
        _plant_outlier(given, any_step, rng)
    elif values == "both":
        # with good steps between them, after which a scale that grows is found out, too
        _spoil(given["x"][min(1, steps // 3)], GLITCH, rng)
        if steps > 1:
            _plant_outlier(given, steps - 1, rng)
    return given


def _spoil(batch: Any, number: float, rng: np.random.Generator) -> int:
    """Put a number somewhere into a batch, and give the row that it is in."""
    row, column = (int(rng.integers(side)) for side in batch.shape)
    batch[row, column] = number
    return row


def _plant_outlier(given: Arrays, step: int, rng: np.random.Generator) -> None:
    """Put a target into a step whose gradient may not fit in."""
    row = _spoil(given["y"][step], OUTLIER, rng)
    # so that no gradient but that of the prediction is as large
    given["x"][step, row] = 0


def _gradients(x: Any, y: Any, w1: Any, w2: Any) -> tuple[Any, Any]:
    h = np.tanh(x @ w1.T)
    slope = SLOPE * (h @ w2.T - y)
    return (slope @ w2 * (1 - h * h)).T @ x, slope.T @ h


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Train in float64, but for the steps that overflow in float16."""
    return {name: right for name, (right, _) in _trained(given).items()}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow what roundings to float16 may add up to."""
    return {name: off for name, (_, off) in _trained(given).items()}


def _trained(given: Arrays) -> dict[str, tuple[Any, Any]]:
    """Train, and carry along the variance that roundings to float16 give each number.

    Roundings are taken to be independent, as in Higham and Mary's analysis: of n that
    are added up, the root of n counts. What they do to a weight in one step and in the
    next is not, and is added as it is. Float32, in which sums are kept, adds nothing
    that shows.
    """
    w1, w2 = (np.asarray(given[name], np.float64) for name in ("w1", "w2"))
    off1, off2 = np.zeros_like(w1), np.zeros_like(w2)
    losses, off_losses, skipped, scale = [], [], 0, FIRST_SCALE
    rate, limit = given["rate"], given["limit"]
    for x, y in zip(given["x"].astype(float), given["y"].astype(float), strict=True):
        in2 = off2**2 + _rounding(w2)
        z = x @ w1.T
        # x and w1 are both rounded
        var_z = _squared(x) @ _single(off1**2 + 2 * _rounding(w1)).T
        off_z = np.sqrt(var_z + _rounding(z))
        h = np.tanh(z)
        # where tanh is flat, not much is left of it
        var_h = np.maximum(np.tanh(z + off_z) - h, h - np.tanh(z - off_z)) ** 2
        var_h += 2 * _rounding(h)
        p = h @ w2.T
        var_p = _product(h, var_h, w2.T, in2.T) + _rounding(p)
        apart = p - y
        losses.append(given["weight"] * (apart**2).sum())
        off = 2 * np.abs(apart) * np.sqrt(var_p) + var_p
        off_losses.append(given["weight"] * off.sum() + 2.0**-18 * losses[-1])
        if abs(x).max() > MOST or abs(apart).max() * SLOPE * scale > MOST:
            skipped, scale = skipped + 1, scale / 2
            continue
        d = SLOPE * apart
        var_d = SLOPE**2 * var_p + _rounding(d, SCALE)
        dh = d @ w2
        var_dh = _product(d, var_d, w2, in2) + _rounding(dh, SCALE)
        flat, var_flat = 1 - h * h, 4 * h * h * var_h + var_h**2 + UNIT**2
        dz = dh * flat
        var_dz = dh**2 * var_flat + var_dh * (flat**2 + var_flat) + _rounding(dz, SCALE)
        g1, g2 = dz.T @ x, d.T @ h
        both = var_dz + (UNIT * dz) ** 2
        var1 = _single(both).T @ _squared(x) + _rounding(g1, SCALE)
        var2 = _product(d.T, var_d.T, h, var_h) + _rounding(g2, SCALE)
        w1 = w1 - rate * np.clip(g1, -limit, limit)
        w2 = w2 - rate * np.clip(g2, -limit, limit)
        # whatever a gradient is, both lie within the limit
        off1 += rate * np.minimum(np.sqrt(var1), 2 * limit) + 2.0**-24 * abs(w1)
        off2 += rate * np.minimum(np.sqrt(var2), 2 * limit) + 2.0**-24 * abs(w2)
    return {
        "w1": (w1, DEVIATIONS * off1),
        "w2": (w2, DEVIATIONS * off2),
        "losses": (np.array(losses), DEVIATIONS * np.array(off_losses)),
        "skipped": (np.array([skipped], np.int32), 0.0),
    }


def _rounding(number: Any, scale: float = 1.0) -> Any:
    """Give the variance of a rounding to float16 of a number times the scale."""
    return (UNIT * number) ** 2 + (LEAST / scale) ** 2


def _product(a: Any, var_a: Any, b: Any, var_b: Any) -> Any:
    """Give the variance of a product of matrices by that of its factors."""
    return a**2 @ var_b + var_a @ (b**2 + var_b)


def _squared(number: Any) -> Any:
    return _single(number) ** 2


def _single(number: Any) -> Any:
    """Give it in float32, since a variance needs no more and large products cost."""
    return number.astype(np.float32)
