"""What a lab's own Python gives is looked at before anything is made of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.cases.promises import not_a_bound, not_numbers
from warpbook_labs.course.authoring import new_lab
from warpbook_labs.course.session import check_public, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.lab.spec import DType, Parameter

SIZES = {"n": 4}
GIVEN = {"x": np.ones(4, np.float32), "factor": 2.0}


@pytest.fixture
def lab(tmp_path: Path) -> LoadedLab:
    return load(new_lab("my-lab", tmp_path))


def giving(lab: LoadedLab, function: str, returned: Any) -> LoadedLab:
    """Have one of its functions give something else."""
    cases = dataclasses.replace(lab.cases, **{function: lambda *_: returned})
    return dataclasses.replace(lab, cases=cases)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"x": "ones"}, "`x` is 'ones', and must be numbers"),
        ({"x": None}, "`x` is None, and must be numbers"),
        ({"x": [[1, 2], [3]]}, "`x` is no array: ValueError"),
        ({"x": np.ones(4, np.complex64)}, "`x` is .*, and must be numbers"),
        ({"x": np.ones(5)}, r"`x` is \(5,\), and must be \(4,\)"),
        ({"factor": np.ones(4)}, r"`factor` is \(4,\), and must be one number"),
        ({"factor": None}, "`factor` is None, and must be numbers"),
    ],
)
def test_inputs_are_numbers_in_the_right_shape(
    lab: LoadedLab, more: dict[str, Any], words: str
) -> None:
    rng = np.random.default_rng(1)
    fit = OwnPython(giving(lab, "inputs", GIVEN)).inputs(SIZES, "random", rng)
    assert fit is GIVEN
    python = OwnPython(giving(lab, "inputs", {**GIVEN, **more}))
    with pytest.raises(BadLab, match=rf"my_lab/cases\.py: inputs: {words}"):
        python.inputs(SIZES, "random", rng)


@pytest.mark.parametrize(
    ("dtype", "number"), [("uint8", 300), ("int32", float("nan")), ("int8", -129)]
)
def test_a_scalar_must_fit_its_type(dtype: DType, number: float) -> None:
    parameter = Parameter("factor", "scalar", dtype)
    words = not_numbers(parameter, number)
    assert words == f"`factor` is {number}, and must be a number of {dtype}."
    assert not_numbers(parameter, 100) == not_numbers(parameter, np.ones(1)) == ""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_a_tolerance_may_be_anything_only_where_right_is_no_finite_number(
    dtype: Any,
) -> None:
    right = np.array([1.0, np.nan, np.inf, 2.0])
    for fit in (
        [0, 0, 0, 0.5],
        [-0.0, 1, 1, 1],
        [0, np.nan, np.inf, 1],
        [1, -1, -1, 1],
    ):
        assert not_a_bound("out", np.array(fit, dtype), right, (4,)) == ""
    for bad in ([0, 0, 0, np.nan], [np.inf, 0, 0, 0], [0, 0, 0, -0.5]):
        words = not_a_bound("out", np.array(bad, dtype), right, (4,))
        assert "must be finite and 0 or more" in words


def test_a_tolerance_is_one_number_or_goes_with_the_outputs_shape() -> None:
    right = np.ones((2, 3))
    for fit in (0, 1, 0.5, True, np.float32(1), np.ones((1, 1)), np.ones((2, 1)), [0]):
        assert not_a_bound("out", fit, right, (2, 3)) == ""
    for bad in (np.ones(2), np.ones(6), np.ones((1, 2, 3)), []):
        words = not_a_bound("out", bad, right, (2, 3))
        assert words.endswith("and must be one number or (2, 3).")
    assert not_a_bound("out", -1, right, (2, 3)).startswith("`out` is -1,")
    # an output without elements has nothing that may be off
    assert not_a_bound("out", np.ones((0, 3)), np.ones((0, 3)), (0, 3)) == ""


def test_a_submission_to_a_bad_lab_is_kept_and_the_lab_is_refused(
    lab: LoadedLab, tmp_path: Path
) -> None:
    store = Store(tmp_path / "labs.db")
    bad = giving(lab, "tolerance", {"out": np.zeros(3)})
    with pytest.raises(BadLab, match=r"cases\.py: tolerance: `out` is \(3,\)"):
        submit(store, bad, lab.reference)
    assert store.submissions("my-lab") == [1]
    with pytest.raises(BadLab, match=r"cases\.py: tolerance: `out` is \(3,\)"):
        check_public(bad, lab.reference)
    assert submit(store, lab, lab.reference).passed
