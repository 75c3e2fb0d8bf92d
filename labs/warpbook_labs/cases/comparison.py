"""Whether an output is right, and if not, where and how it is wrong first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.spec import Lab, Parameter
from warpbook_labs.lab.texts import named_lines


def wrong_words(wrong: WrongElement) -> str:
    """Say what is wrong in one line."""
    return f"{number_words(wrong)}. {count_words(wrong)}{_writer_words(wrong)}"


def number_words(wrong: WrongElement) -> str:
    place = ", ".join(map(str, wrong.index))
    return (
        f"{wrong.output}[{place}] is {wrong.got}; expected {wrong.expected}, "
        f"{wrong.allowed}"
    )


def _writer_words(wrong: WrongElement) -> str:
    if wrong.beside_line is not None:
        return _beside_words(wrong)
    if wrong.line is None:
        return ""
    if wrong.from_lines:
        computing = named_lines(wrong.from_lines)
        return f" Line {wrong.line} wrote it last, from what {computing} computed."
    if wrong.computed_line is None:
        return f" Line {wrong.line} wrote it last."
    return f" Line {wrong.computed_line} computed it; line {wrong.line} wrote it last."


def _beside_words(wrong: WrongElement) -> str:
    """Say of an element that nobody wrote who wrote beside it, or would have."""
    verb = "wrote beside it" if wrong.is_beside_written else "would write it"
    words = f" Line {wrong.beside_line} {verb}"
    launches, lines = wrong.launch_lines, wrong.from_lines
    deciding = [named_lines(lines)] if lines else []
    if launches:
        noun = "launch" if len(launches) == 1 else "launches"
        deciding.append(f"the {noun} on {named_lines(launches)}")
    if not deciding:
        return f"{words}."
    plural = len(lines) + len(launches) > 1
    decide = "decide" if plural else "decides"
    return f"{words}; {' and '.join(deciding)} {decide} where, and which threads do."


def count_words(wrong: WrongElement) -> str:
    return f"{wrong.wrong:,} of {wrong.elements:,} elements are wrong."


#: what was found where nobody has written
NOTHING = "nothing"


class InputValue(Struct, frozen=True):
    """An input where an element is wrong."""

    #: with the index, such as "x[3]"
    name: str
    value: str


class WrongElement(Struct, frozen=True):
    """The first element that is wrong."""

    output: str
    index: tuple[int, ...]
    got: str
    expected: str
    #: how far it may be off; "exactly" where it may not
    allowed: str
    #: how many are wrong in all, of how many; not shown to learners for a hidden case
    wrong: int | None
    elements: int | None
    #: of the source: what wrote it last; None where that is not known
    line: int | None = None
    #: of the source: what computed it, where `line` only copied it; None if not known
    computed_line: int | None = None
    #: of the source: from which its value came; where nobody wrote it, what decides on
    #: who writes beside it
    from_lines: tuple[int, ...] = ()
    #: where nobody wrote it: the line that wrote beside it, or would have, and those of
    #: the launches that may
    beside_line: int | None = None
    is_beside_written: bool = True
    launch_lines: tuple[int, ...] = ()
    #: of a case that the learner sees: the inputs at this place
    inputs: tuple[InputValue, ...] = ()


def first_wrong(
    name: str,
    got: NDArray[Any],
    expected: NDArray[Any],
    tolerance: NDArray[Any] | float,
    first_unwritten: int | None = None,
) -> WrongElement | None:
    """Compare an output with what is right.

    NaN must be NaN, infinities must be the same, and the rest within the tolerance. An
    element that nobody has written is wrong, whatever was there.

    Args:
        expected: of the same shape, exact or in float64.
        first_unwritten: the first byte that nobody has written.
    """
    if first_unwritten is None and _has_same_bits(got, np.asarray(expected)):
        # the usual end, and for large outputs a tenth of the time
        return None
    bound = np.broadcast_to(np.asarray(tolerance, np.float64), got.shape)
    if got.dtype.kind == "f":
        wide, exact = got.astype(np.float64), np.asarray(expected, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(wide - exact) <= bound
        right = np.where(
            np.isfinite(exact),
            near,
            (wide == exact) | (np.isnan(wide) & np.isnan(exact)),
        )
    else:
        right = (_apart(got, np.asarray(expected)) <= bound).astype(np.bool_)
    wrong = np.flatnonzero(~right)
    place = int(wrong[0]) if len(wrong) else None
    unwritten = None if first_unwritten is None else first_unwritten // got.itemsize
    if unwritten is not None and (place is None or unwritten <= place):
        place = unwritten
    if place is None:
        return None
    index = tuple(
        int(place_of_axis) for place_of_axis in np.unravel_index(place, got.shape)
    )
    allowed = float(bound[index])
    return WrongElement(
        name,
        index,
        NOTHING if place == unwritten else written(got[index]),
        written(np.asarray(expected)[index]),
        "exactly" if allowed == 0 else f"within {allowed:.3g}",
        max(len(wrong), 1),
        got.size,
    )


def error_share(
    got: NDArray[Any], expected: NDArray[Any], tolerance: NDArray[Any] | float
) -> float | None:
    """Return the largest error as a share of its tolerance; None where all is exact."""
    bound = np.broadcast_to(np.asarray(tolerance, np.float64), got.shape)
    exact = np.asarray(expected, np.float64)
    asked = (bound > 0) & np.isfinite(exact) & np.isfinite(got)
    if not asked.any():
        return None
    off = np.abs(got[asked].astype(np.float64) - exact[asked])
    return float(np.max(off / bound[asked]))


def _apart(got: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    is_short = got.itemsize < 8 and expected.itemsize < 8
    # Python's own numbers hold every difference, and take twenty times as long
    wide = np.int64 if is_short else object
    apart: NDArray[Any] = np.abs(got.astype(wide) - expected.astype(wide))
    return apart


def _has_same_bits(got: NDArray[Any], expected: NDArray[Any]) -> bool:
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    bits = f"u{got.itemsize}"
    one, other = np.ascontiguousarray(got), np.ascontiguousarray(expected)
    return np.array_equal(one.view(bits), other.view(bits))


def written(number: Any) -> str:
    """Write a number with the digits that its type needs, up to nine."""
    return (
        f"{float(number):.9g}" if np.asarray(number).dtype.kind == "f" else str(number)
    )


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
