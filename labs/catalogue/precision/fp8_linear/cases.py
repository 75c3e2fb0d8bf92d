"""Values of the lab, and what is right."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]
#: of a number between two codes, how near the middle either is right
_NEAR = 1e-4
#: of float16 half a step, as a part of the number, and the smallest step
_UNIT, _LEAST = 2.0**-11, 2.0**-24
#: what sums of tensor cores may be off, of the sum and of its products: most where
#: about 128 have one sign, which is how many they add before they go on in float32
_OF_SUM, _OF_PRODUCTS = 2.0**-9, 2.0**-9
#: the largest code, and the exponent of the smallest that has all its places
_MOST, _LEAST_EXPONENT = 448.0, -6
#: places of the fraction
_PLACES = 3
#: where normal numbers end, which nobody is to know, and sizes of x in earlier steps
_CLIP, _PAST = (3.6, 3.95), (4.0, 6.0)


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw activations, codes of weights, and what was largest before."""
    tokens, features, outputs = (
        sizes[name] for name in ("tokens", "features", "outputs")
    )
    x = rng.standard_normal((tokens, features))
    past = rng.uniform(*_PAST, sizes["steps"])
    # four standard deviations are the largest code
    weight = _MOST / 4 * rng.standard_normal((outputs, features))
    scale = rng.uniform(0.5, 1) / (_MOST * np.sqrt(features))
    end = rng.uniform(*_CLIP)
    x = np.clip(x, -end, end)
    if values == "random":
        past = _with_odd_fraction(past)
    if values == "surprise":
        count = max(1, tokens * features // 50)
        places = rng.choice(tokens * features, count, replace=False)
        signs = rng.choice([-1, 1], count)
        x.flat[places] = signs * rng.uniform(2, 30, count) * past.max()
    elif values == "small_rows":
        # subnormal codes and zeros
        x *= rng.choice([1, 1e-3, 1e-5, 0], (tokens, 1))
    elif values == "positive":
        x, weight = np.maximum(np.abs(x), 0.01), np.maximum(np.abs(weight), 1)
    elif values == "large":
        # up to 39,500 and 60,000: float16 has nothing that is twice as large
        x, past = 1e4 * x, 1e4 * past
    return {
        "x": x.astype(np.float16),
        "weight": bits_of(weight),
        # what was largest among numbers of float16 is one
        "past": past.astype(np.float16).astype(np.float32),
        "weight_scale": float(np.float32(scale)),
    }


def _with_odd_fraction(sizes: Any) -> Any:
    """Move sizes to where no float16 lies in the middle between two codes.

    Timed calls share one bound, and how many numbers lie there hangs on the scale: an
    even whole fraction has some in each power of two.
    """
    return (sizes.astype(np.float16).view(np.uint16) | 1).view(np.float16)


def bits_of(numbers: Any) -> Any:
    """Give the bits of the codes of numbers: the nearest, halves to even."""
    exponents, places = _placed(numbers)
    # a place too many is one more in the exponent
    bits = ((exponents - _LEAST_EXPONENT) << _PLACES) + np.rint(places).astype(np.int32)
    return (bits + 128 * np.signbit(numbers)).astype(np.uint8)


def numbers_of(bits: Any) -> Any:
    """Give the numbers that bits of codes stand for."""
    every = np.arange(256)
    exponents, fractions = every >> _PLACES & 15, every % (1 << _PLACES)
    whole = fractions + (exponents > 0) * (1 << _PLACES)
    sizes = np.ldexp(whole, np.maximum(exponents, 1) - 1 + _LEAST_EXPONENT - _PLACES)
    return np.where(every < 128, sizes, -sizes)[bits]


def _placed(numbers: Any) -> tuple[Any, Any]:
    """Give the exponent of each code, and the number in steps of codes there."""
    sizes = np.minimum(np.abs(numbers), _MOST)
    # of a fraction from one half to 1
    _, exponents = np.frexp(sizes)
    exponents = np.maximum(np.where(sizes, exponents - 1, -99), _LEAST_EXPONENT)
    return exponents, np.ldexp(sizes, _PLACES - exponents)


def _scale(given: Arrays) -> float:
    """Give the scale of x."""
    return float(given["past"].max()) / _MOST


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the largest size, and the result."""
    x, scale = given["x"].astype(np.float64), _scale(given)
    codes, w = numbers_of(bits_of(x / scale)), numbers_of(given["weight"])
    return {
        "largest": np.abs(x).max(keepdims=True).reshape(1).astype(np.float32),
        "out": (codes @ w.T) * (scale * given["weight_scale"]),
    }


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow either code in the middle between two, a rounding, and tensor cores' sums.

    What bounds need is computed in float32: large products cost.
    """
    scale = _scale(given)
    both = scale * given["weight_scale"]
    exact = given["x"].astype(np.float64) / scale
    exponents, places = _placed(exact)
    is_near = np.abs(places - np.trunc(places) - 0.5) < _NEAR
    codes = numbers_of(bits_of(exact)).astype(np.float32)
    w = numbers_of(given["weight"]).astype(np.float32)
    near_size = _near_size(is_near, exponents, w) * both
    products = np.sqrt((codes**2) @ (w**2).T) * (both * _OF_PRODUCTS)
    size = np.abs(right["out"].astype(np.float64))
    rounded = 1.1 * _UNIT * (size + near_size + products)
    return {
        "largest": 0.0,
        "out": rounded + _OF_SUM * size + products + near_size + 4 * _LEAST,
    }


def _near_size(is_near: Any, exponents: Any, w: Any) -> Any:
    """Say how far either code in the middle between two may move each result."""
    # of few tokens few columns have any
    columns = is_near.any(axis=0)
    steps = np.ldexp(is_near[:, columns], exponents[:, columns] - _PLACES)
    return steps.astype(np.float32) @ np.abs(w[:, columns]).T
