"""One wrong element is found wherever it is, and told as it is."""

from __future__ import annotations

import numpy as np
import pytest

from warpbook_labs.cases.comparison import first_wrong


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_one_wrong_output_in_each_position_is_found(dtype: str) -> None:
    right = np.arange(60).reshape(3, 4, 5).astype(dtype)
    assert first_wrong("out", right.copy(), right, 0.0) is None
    for place in np.ndindex(right.shape):
        got = right.copy()
        got[place] += 1
        wrong = first_wrong("out", got, right, 0.0)
        assert wrong is not None and wrong.index == place
        assert (wrong.wrong, wrong.elements, wrong.allowed) == (1, 60, "exactly")


@pytest.mark.parametrize(
    ("got", "right"),
    [
        (0.0, np.nan),
        (np.nan, 0.0),
        (np.inf, np.nan),
        (np.nan, np.inf),
        (np.inf, -np.inf),
        (np.finfo(np.float32).max, np.inf),
        (np.inf, np.finfo(np.float32).max),
    ],
)
def test_what_is_not_finite_must_be_the_same_whatever_is_allowed(
    got: float, right: float
) -> None:
    made, exact = np.array([1, got], np.float32), np.array([1, right], np.float64)
    wrong = first_wrong("out", made, exact, 1e30)
    assert wrong is not None and wrong.index == (1,)
    assert first_wrong("out", exact.astype(np.float32), exact, 0.0) is None


def test_a_zero_is_a_zero_whatever_its_sign() -> None:
    minus, plus = np.array([-0.0], np.float32), np.array([0.0], np.float32)
    assert first_wrong("out", minus, plus, 0.0) is None


def test_a_tolerance_may_be_one_for_each_element() -> None:
    right = np.zeros(3)
    got = np.array([0.1, 0.1, 0.1], np.float32)
    wrong = first_wrong("out", got, right, np.array([0.2, 0.05, 0.2]))
    assert wrong is not None and wrong.index == (1,)
    assert (wrong.got, wrong.expected, wrong.allowed) == (
        "0.100000001",
        "0",
        "within 0.05",
    )


def test_numbers_of_64_bits_are_not_rounded_to_compare_them() -> None:
    right = np.array([2**62], np.int64)
    assert first_wrong("out", right + 1, right, 0.0) is not None


def test_small_numbers_are_as_far_apart_as_they_are() -> None:
    got, right = np.array([-128, 0], np.int8), np.array([127, 0], np.int8)
    assert first_wrong("out", got, right, 255) is None
    wrong = first_wrong("out", got, right, 254)
    assert wrong is not None and (wrong.index, wrong.wrong) == ((0,), 1)


def test_an_element_that_nobody_wrote_is_wrong_though_it_looks_right() -> None:
    right = np.zeros((2, 3), np.float32)
    wrong = first_wrong("out", right.copy(), right, 0.0, first_unwritten=17)
    assert wrong is not None
    assert (wrong.index, wrong.got, wrong.expected) == ((1, 1), "nothing", "0")
