"""How results of a changed run are held against the unchanged run's."""

from __future__ import annotations

import pytest
import torch

from warpbook.kernel.trying.outputs import compare, expected_relative


def test_the_same_bits_differ_by_nothing() -> None:
    values = {"y": torch.tensor([1.0, float("nan"), float("inf")]), "n": torch.ones(0)}
    difference = compare(
        values, {name: value.clone() for name, value in values.items()}
    )
    assert (difference.compared, difference.largest_absolute, difference.differs) == (
        2,
        0.0,
        False,
    )


@pytest.mark.parametrize(
    "dtype, relative, differs",
    [
        (torch.float32, 1e-6, False),
        (torch.float32, 1e-3, True),
        (torch.float64, 1e-12, False),
        (torch.float64, 1e-9, True),
        (torch.bfloat16, 0.01, False),
        (torch.float16, 0.01, True),
        (torch.int64, 0.01, True),
        (torch.complex64, 1e-3, True),
    ],
)
def test_what_rounding_explains_depends_on_the_dtype(
    dtype: torch.dtype, relative: float, differs: bool
) -> None:
    before = torch.tensor([100.0, -1000.0]).to(dtype)
    after = before.clone()
    after[0] = 100 + 1000 * relative
    difference = compare({"y": before}, {"y": after})
    assert difference.differs is differs
    assert difference.expected_relative == expected_relative(dtype)
    assert difference.dtype in str(dtype)


def test_a_change_to_a_smaller_dtype_may_round_as_that_does() -> None:
    before, after = {"y": torch.tensor([1.0])}, {"y": torch.tensor([1.01])}
    difference = compare(before, after, rounding=2**-6)
    assert not difference.differs and difference.dtype == "the change's dtype"
    assert compare(before, after, rounding=2**-9).differs
    # which of two is larger is not rounded
    counts = {"n": torch.tensor([100])}, {"n": torch.tensor([101])}
    assert compare(*counts, rounding=2**-6).differs


def test_one_wrong_element_is_no_rounding_of_inputs() -> None:
    before = torch.linspace(1, 2, 100_000)
    rounded = [{"y": before * (1 + 2e-5 * (-1) ** at)} for at in range(2)]
    like = before * (1 - 2e-5)
    assert not compare({"y": before}, {"y": like}, rounded=rounded).differs
    wrong = before.clone()
    wrong[7] += 1
    assert compare({"y": before}, {"y": wrong}, rounded=rounded).differs


def test_noise_of_unchanged_runs_is_no_difference() -> None:
    before, again = torch.tensor([1.0]), torch.tensor([1.01])
    changed = {"y": torch.tensor([0.99])}
    assert compare({"y": before}, changed).differs
    difference = compare({"y": before}, changed, {"y": again})
    assert not difference.differs
    assert difference.unchanged_relative == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    "changed, words",
    [
        ({}, "y is not a result of both"),
        ({"y": torch.ones(3)}, "y has the shape (3,) instead of (2,)"),
        ({"y": torch.tensor([1.0, float("nan")])}, "y is infinite or no number"),
    ],
)
def test_what_can_not_be_compared_differs(
    changed: dict[str, torch.Tensor], words: str
) -> None:
    difference = compare({"y": torch.ones(2)}, changed)
    assert difference.differs and words in str(difference.mismatch)
