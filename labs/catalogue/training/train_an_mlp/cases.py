"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
_EPSILON = 2.0**-24
#: whole numbers below this are exact in FP32
_EXACT = 2**24


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw samples, labels, weights and the learning rate.

    Samples, `w1` and `b1` are multiples of 2^-6 below 2, so FP32 holds every sum of
    up to 4,096 of their products without rounding.
    """
    n, d, h, c = (sizes[name] for name in "ndhc")

    def grid(most: float, *shape: int) -> Any:
        return (rng.integers(-64 * most, 64 * most, shape, endpoint=True) / 64).astype(
            np.float32
        )

    x, w1, b1 = grid(1.5, n, d), grid(0.5, d, h), grid(0.5, h)
    w2, b2 = (
        rng.uniform(-0.5, 0.5, shape).astype(np.float32) for shape in ((h, c), (c,))
    )
    labels = rng.integers(0, c, n, dtype=np.int32)
    if values in ("whole", "large"):
        # sums are often 0, where the slope of relu is 0
        x, w1, b1 = (
            rng.integers(-1, 2, array.shape).astype(np.float32) for array in (x, w1, b1)
        )
    if values == "large":
        w2 = rng.integers(-99, 100, (h, c)).astype(np.float32)
        # all of a row may be far from 0 on one side
        b2 = rng.integers(-300, 301, c).astype(np.float32) + np.float32(
            rng.choice([-999, 999])
        )
    elif values == "dead":
        # units that no sample reaches keep their weights
        b1[rng.random(h) < 0.5] = -2048
    elif values == "one_class":
        labels[:] = rng.integers(0, c)
    return {
        "x": x,
        "labels": labels,
        "w1": w1,
        "b1": b1,
        "w2": w2,
        "b2": b2,
        "lr": float(rng.choice([0.125, 0.5, 2.0])),
    }


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the loss and the weights after the step, in float64."""
    step = _Step(given)
    return {"loss": step.losses.mean(keepdims=True)} | {
        name: step.weights[name] - step.lr * gradient
        for name, gradient in step.gradients.items()
    }


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Follow the bounds of errors from the logits to the updated weights."""
    step, n, h, c = _Step(given), sizes["n"], sizes["h"], sizes["c"]
    hidden, delta = step.hidden, np.abs(step.delta)
    w2 = np.abs(step.weights["w2"])
    size = hidden @ w2 + np.abs(step.weights["b2"])
    is_exact = _is_whole(given["w2"]) and _is_whole(given["b2"]) and _is_whole(hidden)
    logits = (
        np.zeros_like(size)
        if is_exact and size.max() < _EXACT
        else (h + 1) * _EPSILON * size
    )
    # of an exponential's argument: both logits, and the difference; __expf is off by
    # more where its argument is large
    argument = 2 * logits.max(1, keepdims=True) + 2 * _EPSILON * step.below
    relative = np.expm1(2 * argument.max(1, keepdims=True)) + (c + 8) * _EPSILON
    delta_off = (
        step.chances * (relative + _EPSILON * 2 * step.below) + 2 * _EPSILON
    ) / n
    delta_off += 4 * _EPSILON * delta
    # as log(sum) + largest - logit of the label, or by differences
    loss_off = argument.max(1) + relative[:, 0] + 4 * _EPSILON * np.abs(step.losses)
    loss_off += 2 * _EPSILON * size.max(1)
    back = np.abs(step.back)
    slope = hidden > 0
    back_off = slope * (delta_off @ w2.T + (c + 1) * _EPSILON * (delta @ w2.T))
    x = np.abs(given["x"].astype(np.float64))
    more = (n + 1) * _EPSILON
    off = {
        "w1": x.T @ back_off + more * (x.T @ back),
        "b1": back_off.sum(0) + more * back.sum(0),
        "w2": hidden.T @ delta_off + more * (hidden.T @ delta),
        "b2": delta_off.sum(0) + more * delta.sum(0),
    }
    return {"loss": loss_off.mean() + more * np.abs(step.losses).mean()} | {
        name: step.lr * (off[name] + 2 * _EPSILON * np.abs(step.gradients[name]))
        + 2 * _EPSILON * np.abs(step.weights[name])
        for name in off
    }


class _Step:
    """A step's numbers in float64."""

    def __init__(self, given: Arrays) -> None:
        x = given["x"].astype(np.float64)
        labels = given["labels"]
        self.lr = float(given["lr"])
        self.weights = {
            name: given[name].astype(np.float64) for name in ("w1", "b1", "w2", "b2")
        }
        w1, b1, w2, b2 = self.weights.values()
        self.hidden = np.maximum(x @ w1 + b1, 0)
        logits = self.hidden @ w2 + b2
        #: how far each logit is below the largest of its row
        self.below = logits.max(1, keepdims=True) - logits
        powers = np.exp(-self.below)
        self.chances = powers / powers.sum(1, keepdims=True)
        rows = np.arange(len(x))
        self.losses = np.log(powers.sum(1)) + self.below[rows, labels]
        self.delta = self.chances.copy()
        self.delta[rows, labels] -= 1
        self.delta /= len(x)
        self.back = (self.delta @ w2.T) * (self.hidden > 0)
        self.gradients = {
            "w1": x.T @ self.back,
            "b1": self.back.sum(0),
            "w2": self.hidden.T @ self.delta,
            "b2": self.delta.sum(0),
        }


def _is_whole(array: Any) -> bool:
    return bool((array == np.rint(array)).all())
