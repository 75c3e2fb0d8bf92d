"""The inputs beside a wrong element: of shown cases, and of no hidden one."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from tests.lab_checks import check
from warpbook.cli.labs.card import card_lines
from warpbook_labs.cards.card import card_of
from warpbook_labs.cases.comparison import InputValue, WrongElement, with_inputs
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.course.session import find
from warpbook_labs.results.disclosure import fit_to_tell


def shown(lab: str, index: tuple[int, ...], sizes: dict[str, int]) -> dict[str, str]:
    """The inputs at an element of the first output, where each holds 0, 1, 2, ..."""
    loaded = find(lab).lab
    given: dict[str, Any] = {}
    for parameter in loaded.parameters:
        if parameter.kind in ("input", "inout"):
            # flat, as a lab may draw them
            given[parameter.name] = np.arange(
                np.prod([eval(side, dict(sizes)) for side in parameter.shape])
            )
    output = next(
        parameter for parameter in loaded.parameters if parameter.kind == "output"
    )
    wrong = WrongElement(output.name, index, "1", "0", "exactly", 1, 1)
    inputs = with_inputs(wrong, loaded, given, sizes).inputs
    return {sample.name: sample.value for sample in inputs}


@pytest.mark.parametrize(
    ("lab", "index", "sizes", "inputs"),
    [
        ("vector-add", (7,), {"n": 9}, {"x[7]": "7", "y[7]": "7"}),
        ("tiled-transpose", (2, 1), {"h": 3, "w": 4}, {"x[1, 2]": "6"}),
        (
            "matmul",
            (1, 2),
            {"m": 2, "n": 3, "k": 5},
            {"a[1, 0:4]": "5, 6, 7, 8, …", "b[0:4, 2]": "2, 5, 8, 11, …"},
        ),
        (
            "reduction-and-scan",
            (0,),
            {"n": 3},
            {"x[0:3]": "0, 1, 2", "k[0:3]": "0, 1, 2"},
        ),
    ],
)
def test_inputs_are_found_by_the_sides_that_they_share_with_the_output(
    lab: str, index: tuple[int, ...], sizes: dict[str, int], inputs: dict[str, str]
) -> None:
    assert shown(lab, index, sizes) == inputs


@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_card_shows_inputs_of_shown_cases_alone(is_hidden: bool) -> None:
    loaded = find("vector-add")
    source = loaded.correct["one_element_each.cu"].replace("x[i] +", "2 * x[i] +")
    case = DrawnCase("a prime number", {"n": 1_021}, "random", 5, is_hidden)
    result = check(loaded, source, [case])
    text = "\n".join(card_lines(card_of(result, source)))
    assert ("input x[" in text and "input y[" in text) != is_hidden
    [case_told] = result.cases
    assert case_told.wrong is not None and bool(case_told.wrong.inputs) != is_hidden


def test_inputs_of_a_hidden_case_are_left_out_wherever_they_come_from() -> None:
    loaded = find("vector-add")
    source = loaded.correct["one_element_each.cu"].replace("x[i] +", "2 * x[i] +")
    case = DrawnCase("a prime number", {"n": 1_021}, "random", 5, is_hidden=False)
    [case_told] = check(loaded, source, [case]).cases
    assert case_told.wrong is not None
    wrong = msgspec.structs.replace(
        case_told.wrong, inputs=(InputValue("x[3]", "secret"),), elements=None
    )
    hidden = msgspec.structs.replace(case_told, is_hidden=True, wrong=wrong)
    result = msgspec.structs.replace(check(loaded, source, [case]), cases=(hidden,))
    assert "secret" not in repr(fit_to_tell([hidden]))
    assert "secret" not in repr(card_of(result, source))
