"""The numbers of the cases that a lab shows, in place of the Python that draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.lab.files import SHOWN
from warpbook_labs.lab.spec import Case, Lab


def generator_of(seed: int, call: int) -> np.random.Generator:
    """Give the source of chance of one call; the first has that of a kernel's case."""
    return np.random.default_rng((seed, call) if call else seed)


def calls_of(lab: Lab) -> int:
    """Say how many calls a case has, each with inputs of its own."""
    return lab.host.calls if lab.host is not None else 1


_PARTS = ("inputs", "expected", "tolerance")

Functions = dict[str, Callable[..., dict[str, Any]]]


def shown_functions(folder: Path, lab: Lab) -> Functions:
    """Give `inputs`, `expected` and `tolerance` of the cases that a lab shows.

    Raises:
        LookupError: they are asked for another case.
        OSError: the file can't be read; ValueError: it is none of this kind.
    """
    with np.load(folder / SHOWN, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}

    def part(number: int, which: str) -> dict[str, Any]:
        begin = f"{number}/{which}/"
        return {
            name.removeprefix(begin): values
            for name, values in held.items()
            if name.startswith(begin)
        }

    calls = list(_calls(lab))
    cases = {number: part(number, "inputs") for number in range(len(calls))}

    def inputs(sizes: dict[str, int], values: str, rng: Any) -> dict[str, Any]:
        # the generator is where its seed has put it
        drawn = rng.integers(1 << 62)
        for number, (case, call) in enumerate(calls):
            if dict(case.sizes) == sizes and case.values == values:
                if generator_of(case.seed, call).integers(1 << 62) == drawn:
                    return cases[number]
        raise LookupError("only the cases that the lab shows are here")

    def number_of(given: dict[str, Any]) -> int:
        return next(number for number, case in cases.items() if case is given)

    def expected(given: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
        return part(number_of(given), "expected")

    def tolerance(
        given: dict[str, Any], sizes: dict[str, int], right: Any
    ) -> dict[str, Any]:
        return part(number_of(given), "tolerance")

    return {"inputs": inputs, "expected": expected, "tolerance": tolerance}


def shown_numbers(lab: Lab, cases: Any) -> dict[str, NDArray[Any]]:
    """Compute what `shown_functions` gives back, by names in the file."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, (case, call) in enumerate(_calls(lab)):
        sizes = dict(case.sizes)
        rng = generator_of(case.seed, call)
        given = cases.inputs(dict(sizes), case.values, rng)
        right = cases.expected(given, dict(sizes))
        bounds = cases.tolerance(given, dict(sizes), right)
        for which, numbers in zip(_PARTS, (given, right, bounds), strict=True):
            for name, values in numbers.items():
                arrays[f"{number}/{which}/{name}"] = np.asarray(values)
    return arrays


def _calls(lab: Lab) -> Iterator[tuple[Case, int]]:
    """Give every call of every case; kernels have one."""
    return ((case, call) for case in lab.public for call in range(calls_of(lab)))
