"""The inputs of a case at the place of a wrong element, for learners to follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from warpbook_labs.cases.comparison import InputValue, WrongElement, written
from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.spec import Lab, Parameter

#: of a side of an input that the output has not, so many elements are shown
_MOST_BESIDE = 4
_MOST_INPUTS = 8


def with_inputs(
    wrong: WrongElement, lab: Lab, given: Mapping[str, Any], sizes: Mapping[str, int]
) -> WrongElement:
    """Add the inputs at the place of a wrong element; of shown cases only.

    An input that has the output's shape is read at the same index. One of another
    shape is read where its sides are called like the output's; of a side that the
    output has not, the first elements are given.

    Args:
        wrong: an element of an output of the lab.
    """
    outputs = [
        parameter for parameter in lab.parameters if parameter.name == wrong.output
    ]
    if not outputs:
        return wrong
    samples = [
        shown
        for parameter in lab.parameters
        if parameter.kind in ("input", "inout", "scalar") and parameter.name in given
        for shown in _values(parameter, given[parameter.name], sizes, outputs[0], wrong)
    ]
    return msgspec.structs.replace(wrong, inputs=tuple(samples[:_MOST_INPUTS]))


def _values(
    parameter: Parameter,
    drawn: Any,
    sizes: Mapping[str, int],
    output: Parameter,
    wrong: WrongElement,
) -> Iterator[InputValue]:
    if parameter.kind == "scalar":
        yield InputValue(parameter.name, written(np.asarray(drawn, parameter.dtype)))
        return
    place = _place(parameter.shape, output.shape, wrong.index)
    if place.count(None) > 1:
        # which of many elements count, no shape tells
        return
    held = np.reshape(drawn, [value(side, sizes) for side in parameter.shape])
    sides, names = [], []
    for at, size in zip(place, held.shape, strict=True):
        if at is None:
            sides.append(slice(0, _MOST_BESIDE))
            names.append(f"0:{min(size, _MOST_BESIDE)}")
        elif at < size:
            sides.append(slice(at, at + 1))
            names.append(str(at))
        else:
            return
    # as the kernel reads them
    numbers = held[tuple(sides)].ravel().astype(parameter.dtype)
    is_cut = None in place and held.shape[place.index(None)] > _MOST_BESIDE
    words = ", ".join(map(written, numbers)) + (", …" if is_cut else "")
    yield InputValue(f"{parameter.name}[{', '.join(names)}]", words)


def _place(
    sides: Sequence[str], output_sides: Sequence[str], index: Sequence[int]
) -> list[int | None]:
    """Give the index in each side of an input; None for a side without one."""
    if tuple(sides) == tuple(output_sides):
        return list(index)
    by_side = {
        side: at
        for side, at in zip(output_sides, index, strict=False)
        if list(output_sides).count(side) == 1
    }
    return [by_side.get(side) for side in sides]
