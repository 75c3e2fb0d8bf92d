"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
EPSILON = 1e-5
#: half a step of float16, of a number and at its end; half a step of float32
_HALF, _LEAST, _UNIT = 2.0**-11, 2.0**-25, 2.0**-24


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw x, its weights and the gradient, and give what the forward pass has kept."""
    rows, width = sizes["rows"], sizes["width"]
    x, dy = rng.standard_normal((2, rows, width), np.float32)
    weight = 1 + rng.standard_normal(width, np.float32) / 4
    if values == "offset":
        # the mean is far larger than what is left of x without it
        x += rng.choice([-300, 100, 1000], (rows, 1))
    elif values == "large_gradients":
        # products with weights are infinite in float16, and results are not
        x, dy, weight = x * 200, dy * 3000, weight * 50
    elif values == "one_sign":
        # sums grow, and a narrow type loses what is added late
        dy = np.abs(dy) + 20
    elif values == "last_counts":
        # nearly all is in the last row and the last column
        x[-1], x[:, -1], dy = x[-1] * 30, x[:, -1] + 5, dy / 64
        dy[-1], dy[:, -1] = dy[-1] * 2000, dy[:, -1] * 2000
    elif values == "level_rows":
        # no variance in some rows, and no gradient in others
        x[rng.random(rows) < 0.3] = 2
        dy[rng.random(rows) < 0.3] = 0
    x, dy, weight = (np.clip(v, -3e4, 3e4).astype(np.float16) for v in (x, dy, weight))
    wide = x.astype(np.float64)
    return {
        "dy": dy,
        "x": x,
        "weight": weight,
        "mean": wide.mean(axis=1).astype(np.float32),
        "rstd": (1 / np.sqrt(wide.var(axis=1) + EPSILON)).astype(np.float32),
    }


def _wide(given: Arrays) -> tuple[Any, Any, Any, Any]:
    """Give dy, xhat, g = dy * weight, and rstd of each row, in float64."""
    dy, x, weight = (given[name].astype(np.float64) for name in ("dy", "x", "weight"))
    rstd = given["rstd"].astype(np.float64)[:, None]
    return dy, (x - given["mean"][:, None]) * rstd, dy * weight, rstd


def _row_mean(v: Any) -> Any:
    return v.mean(axis=1, keepdims=True)


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give all three gradients in float64."""
    dy, xhat, g, rstd = _wide(given)
    return {
        "dx": rstd * (g - _row_mean(g) - xhat * _row_mean(g * xhat)),
        "dweight": (dy * xhat).sum(axis=0),
        "dbias": dy.sum(axis=0),
    }


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow the roundings that `lab.toml` names."""
    dy, xhat, g, rstd = (np.abs(v) for v in _wide(given))
    size = np.abs(given["x"].astype(np.float64)) + np.abs(given["mean"][:, None])
    off = 4 * _UNIT * size * rstd
    mean, product = _row_mean(g), _row_mean(g * xhat)
    along, down = (sizes["width"] + 8) * _UNIT, (sizes["rows"] + 8) * _UNIT
    dx = 8 * _UNIT * (g + mean + xhat * product) + along * (mean + xhat * product)
    dx += off * product + xhat * _row_mean(g * off)
    return {
        "dx": 1.05 * (rstd * dx + _HALF * np.abs(right["dx"]) + _LEAST),
        "dweight": down * (dy * xhat).sum(axis=0) + (dy * off).sum(axis=0),
        "dbias": down * dy.sum(axis=0),
    }
