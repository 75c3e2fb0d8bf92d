"""Validating finds what no type tells: a lab that is not as its guide says."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpbook_labs.course.authoring import new_lab
from warpbook_labs.errors import BadLab
from warpbook_labs.grading.validation import validate
from warpbook_labs.lab.loader import load
from warpbook_labs.lab.spec import LanguageName


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    return new_lab("my-lab", tmp_path / "course")


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def refused(lab: Path) -> str:
    """Give why a lab is refused, with its file but not the folder."""
    with pytest.raises(BadLab) as bad:
        list(validate(load(lab), seeds=(5,)))
    return str(bad.value).removeprefix(f"{lab}/")


@pytest.mark.parametrize(
    ("language", "file", "old", "new"),
    [
        ("cuda", "starter.cu", "out[i] =", "out[j] ="),
        ("cuda", "starter.cu", "<<<1, 256>>>", "<<<1 / (n - 256), 256>>>"),
        ("plan", "starter.py", "return n", "return (n"),
        ("host", "starter.py", "import torch", "import torch.nothing"),
    ],
)
def test_a_starter_that_can_not_run_is_refused_with_the_reason(
    language: LanguageName, file: str, old: str, new: str, tmp_path: Path
) -> None:
    lab = new_lab("my-lab", tmp_path, language)
    change(lab / file, old, new)
    reason = refused(lab)
    words = f"{file}: learners begin with it, so it must compile, run, and fail: "
    assert reason.startswith(words) and len(reason) > len(words) + 10
    if "out[j]" in new:
        assert 'kernel.cu(6): error: identifier "j" is undefined' in reason


@pytest.mark.parametrize(
    ("language", "old", "new", "words"),
    [
        (
            "cuda",
            "x = rng.standard_normal(n, np.float32)",
            "x = np.random.default_rng().standard_normal(n, np.float32)",
            "inputs: with the same seed it gives another `x` (values: random)",
        ),
        (
            "cuda",
            "x = rng.choice(kinds, n)",
            "x = np.random.default_rng().choice(kinds, n)",
            "inputs: with the same seed it gives another `x` (values: special)",
        ),
        (
            "host",
            "rng.standard_normal",
            "np.random.default_rng().standard_normal",
            "inputs: with the same seed it gives another `x`",
        ),
        (
            "plan",
            "question_about(rng.randint",
            "question_about(random.randint",
            "questions: with the same seed it draws other questions",
        ),
    ],
)
def test_chance_that_is_not_the_one_given_is_refused(
    language: LanguageName, old: str, new: str, words: str, tmp_path: Path
) -> None:
    lab = new_lab("my-lab", tmp_path, language)
    change(lab / "cases.py", old, new)
    assert refused(lab).startswith(f"cases.py: {words}")


def test_a_lab_may_come_after_one_of_the_catalogue_or_beside_it_only(lab: Path) -> None:
    change(lab / "lab.toml", "minutes = 20", 'minutes = 20\nafter = ["no-such-lab"]')
    assert refused(lab) == (
        "lab.toml: after: there is no other lab `no-such-lab`, here or in "
        "`warpbook labs list`."
    )
    new_lab("no-such-lab", lab.parent)
    assert next(validate(load(lab), seeds=(5,))).ok
    change(lab / "lab.toml", "no-such-lab", "my-lab")
    assert "no other lab `my-lab`" in refused(lab)
    change(lab / "lab.toml", 'after = ["my-lab"]', 'after = ["vector-add"]')
    assert next(validate(load(lab), seeds=(5,))).ok


def test_a_course_in_folders_of_tracks_may_name_labs_of_other_tracks(
    tmp_path: Path,
) -> None:
    lab = new_lab("my-lab", tmp_path / "kernels")
    new_lab("other-lab", tmp_path / "memory")
    change(lab / "lab.toml", "minutes = 20", 'minutes = 20\nafter = ["other-lab"]')
    assert next(validate(load(lab), seeds=(5,))).ok


@pytest.mark.parametrize("language", ["cuda", "host"])
@pytest.mark.parametrize(
    ("function", "given", "words"),
    [
        ("tolerance", '{"out": -1.0}', "`out` is -1, and must be finite"),
        ("tolerance", '{"out": np.nan}', "`out` is nan, and must be finite"),
        ("tolerance", '{"out": np.zeros(3)}', "`out` is (3,), and must be one number"),
        ("tolerance", '{"out": "exact"}', "`out` is 'exact', and must be numbers"),
        ("inputs", "None", "it gives nothing (None), and must give a dict"),
        ("expected", "[1, 2]", "it gives list, and must give a dict"),
    ],
)
def test_what_its_python_must_not_give_is_told_with_the_function(
    language: LanguageName, function: str, given: str, words: str, tmp_path: Path
) -> None:
    lab = new_lab("my-lab", tmp_path, language)
    with (lab / "cases.py").open("a") as file:
        file.write(f"\n\ndef {function}(*_):\n    return {given}\n")
    assert refused(lab).startswith(f"cases.py: {function}: {words}")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("n - 3 * (2 / (n + 1))", "with n = 1 `n - 3 * (2 / (n + 1))` is -2."),
        ("n + 0 / (n - 31)", "with n = 31 `n + 0 / (n - 31)` divides by zero."),
    ],
)
@pytest.mark.parametrize("language", ["cuda", "host"])
def test_a_shape_that_there_can_not_be_is_told_with_the_sizes(
    language: LanguageName, shape: str, words: str, tmp_path: Path
) -> None:
    lab = new_lab("my-lab", tmp_path, language)
    change(lab / "lab.toml", 'shape = ["n"]', f'shape = ["{shape}"]')
    assert refused(lab) == f"lab.toml: parameters.x.shape: {words}"


def test_the_largest_error_of_a_right_solution_is_told_as_a_share(lab: Path) -> None:
    [exact, *_] = validate(load(lab), seeds=(5,))
    assert exact.ok and exact.error_share is None
    change(lab / "cases.py", 'return {"out": 0.0}', 'return {"out": 1.0}')
    change(lab / "reference.cu", "factor * x[i]", "factor * x[i] + 0.25f")
    [close, *_] = validate(load(lab), seeds=(5,))
    assert close.ok and close.error_share == pytest.approx(0.25, abs=0.01)
