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


def inputs(sizes: dict[str, int], values: str, chance: np.random.Generator) -> Arrays:
    """Draw images and filters, and where crops begin."""
    channels, side, workload = sizes["channels"], sizes["side"], sizes["workload"]
    shape = (sizes["batches"], sizes["images"], channels, side, side)
    x = chance.standard_normal(shape, np.float32)
    if values == "wide" and workload in (FIXED, CHANGING):
        # float16 has no such products, TF32 has
        x *= np.float32(2.0**14)
    filters = chance.standard_normal((channels, channels, SIDE, SIDE), np.float32)
    # so small that sums over large images fit into float16, too
    filters /= np.float32(64)
    height = width = 0
    if workload == CHANGING:
        first, end = side // 2, side - sizes["batches"]
        height, width = (int(each) for each in chance.integers(first, end, 2))
    return {"x": x, "filters": filters, "height": height, "width": width}


def expected(given: Arrays, sizes: dict[str, int]) -> Arrays:
    """Give the gradient in float64."""
    total: Any = 0.0
    for images in _batches(given):
        seen = _windows(_convolved(_windows(images), given["filters"]))
        total = total + _filters_of(_convolved(seen, given["filters"]), seen)
    return {"out": total}


def tolerance(given: Arrays, sizes: dict[str, int], right: Arrays) -> Arrays:
    """Allow the roundings of all that is multiplied or kept, as independent errors."""
    # each number is rounded once as a factor, and maybe once as a result
    variance = 2 * (EXACT if sizes["workload"] == REPEAT else ROUNDED) ** 2
    filters = given["filters"].astype(np.float64)
    total: Any = variance * right["out"] ** 2
    for images in _batches(given):
        seen = _windows(images)
        once = _convolved(seen, filters)
        off_once = 2 * variance * _convolved(seen**2, filters**2) + variance * once**2
        seen, off_seen = _windows(once), _windows(off_once)
        twice = _convolved(seen, filters)
        off_twice = _convolved(off_seen + variance * seen**2, filters**2)
        off_twice += variance * twice**2
        total += _filters_of(off_twice, seen**2) + _filters_of(twice**2, off_seen)
        # each batch has its own gradient, which is rounded, too
        total += variance * _filters_of(twice, seen) ** 2
    return {"out": DEVIATIONS * np.sqrt(total)}


def _batches(given: Arrays) -> Any:
    for number, images in enumerate(given["x"].astype(np.float64)):
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
