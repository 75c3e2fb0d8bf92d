"""Values of the lab, what is right, and how far each workload may be off."""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]

REPEAT, FIXED, CHANGING, HALF = 1, 2, 3, 4
#: half a step of float16 relative to a number, which is TF32's as well; and in the
#: workload that wants float32's accuracy 16 of float32's, since sums have any order
ROUNDED, EXACT = 2.0**-11, 2.0**-20
#: so many standard deviations are allowed
DEVIATIONS = 8
#: of a filter; one is left around the images
SIDE, MARGIN = 3, 1


def inputs(sizes: dict[str, int], values: str, rng: np.random.Generator) -> Arrays:
    """Draw images and filters, and where crops begin."""
    channels, side, workload = sizes["channels"], sizes["side"], sizes["workload"]
    shape = (sizes["batches"], sizes["images"], channels, side, side)
    x = rng.standard_normal(shape, np.float32)
    if workload in (FIXED, CHANGING):
        # float16 has no such products, TF32 has
        x *= np.float32(2.0**14)
    filters = rng.standard_normal((channels, channels, SIDE, SIDE), np.float32)
    # so small that sums over large images fit into float16, too
    filters /= np.float32(64)
    height = width = 0
    if workload == CHANGING:
        first, end = side // 3, side - sizes["batches"]
        height, width = (int(side) for side in rng.integers(first, end, 2))
    return {"x": x, "filters": filters, "height": height, "width": width}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the gradient in float64."""
    total: Any = 0.0
    for images in _batches(given, np.float64):
        seen = _windows(_convolved(_windows(images), given["filters"]))
        total = total + _filters_of(_convolved(seen, given["filters"]), seen)
    return {"out": total}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow the roundings of all that is multiplied or kept, as independent errors.

    Of each layer the mean square is taken: its elements are alike. Errors of images and
    results are new ones at each pixel, and grow with the root of how many there are. A
    filter's is the same at all pixels and in all batches, and grows as the sum does.
    """
    variance = (EXACT if sizes["workload"] == REPEAT else ROUNDED) ** 2
    total: Any = 0.0
    gradient: Any = 0.0
    # how large an error may be needs few places, and this takes half of the time
    for images in _batches(given, np.float32):
        once = _convolved(_windows(images), given["filters"])
        seen = _windows(once)
        twice = _convolved(seen, given["filters"])
        # once: two factors and the sum are rounded; twice: the same, and once's errors
        products = twice[:, :1].size * (once**2).mean() * (twice**2).mean()
        total += (3 + 6 + 2) * products
        # a batch's gradient is a sum that is rounded, too
        of_batch = _filters_of(twice, seen)
        total += of_batch**2
        gradient = gradient + of_batch
    # three numbers of filters are in each product, and the mean square of a rounding is
    # a third of the largest's
    total += 3 * (gradient**2).mean() / 3
    return {"out": DEVIATIONS * np.sqrt(variance * total)}


def _batches(given: Arrays, dtype: Any) -> Any:
    for number, images in enumerate(given["x"].astype(dtype)):
        if given["height"]:
            images = images[:, :, : given["height"] + number, : given["width"] + number]
        yield images


def _windows(images: Any) -> Any:
    around = ((0, 0), (0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN))
    return np.lib.stride_tricks.sliding_window_view(
        np.pad(images, around), (SIDE, SIDE), axis=(2, 3)
    )


def _convolved(seen: Any, filters: Any) -> Any:
    """Sum over channels and the filter's sides."""
    return np.tensordot(seen, filters, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def _filters_of(result: Any, seen: Any) -> Any:
    """Sum over images and their sides."""
    return np.tensordot(result, seen, ((0, 2, 3), (0, 2, 3)))
