"""The reference after a pass, the next lab, and formulas without LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from warpbook import lab_solutions
from warpbook.class_hub import NotPublished
from warpbook.hub_client import HubProblem
from warpbook.lab_solutions import solution_of
from warpbook_labs.course.authoring import part
from warpbook_labs.course.overview import next_lab, overview, skipped_words
from warpbook_labs.course.progress import Mark, Progress
from warpbook_labs.course.session import find
from warpbook_labs.course.solution import read_solution
from warpbook_labs.errors import KeptApart, NotPassed
from warpbook_labs.lab.entries import SoFar
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.languages.language import Here
from warpbook_labs.lab.texts import plain_math

FOLDERS = sorted(file.parent for file in CATALOGUE.glob("*/*/lab.toml"))
LAB = find("vector-add")
PASSED = Progress(1, 0, Mark(1, True, 3, 3))
ALL_HERE = Here("13.5", "", triton=True, torch=True, gpus=1)


class Hub:
    """A course that publishes the lab, or does not."""

    def __init__(self, answer: str | Exception) -> None:
        self._answer = answer

    def find(self, lab: str) -> str:
        if isinstance(self._answer, NotPublished):
            raise self._answer
        return lab

    def reference(self, _: str) -> str:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_lab_is_discussed_with_formulas_that_have_a_plain_form(
    folder: Path,
) -> None:
    solution = read_solution(folder)
    assert solution.reference.strip()
    assert 400 < len(solution.discussion) < 2_000
    texts = (
        solution.discussion,
        (folder / "text.md").read_text(),
        find(solution.lab).lab,
    )
    for text in (texts[0], texts[1], texts[2].tolerance, texts[2].asks):
        plain = re.sub(r"`[^`]*`|```.*?```", "", plain_math(text), flags=re.DOTALL)
        assert "$" not in plain and "\\" not in plain


def test_formulas_are_written_without_latex_and_code_is_left() -> None:
    text = r"off by $n \cdot 2^{-24}$ of `$x` and $$\frac{a}{b + c}$$"
    assert plain_math(text) == "off by n · 2^-24 of `$x` and a / (b + c)"
    # what is no formula, or never ends, is left as it is
    for text in ("5 $ each", "$" * 4_000, r"\frac{" * 1_000):
        assert plain_math(text) == text


def test_the_reference_is_shown_after_a_pass() -> None:
    for progress in (Progress(), Progress(2, 1, Mark(1, False, 2, 3))):
        with pytest.raises(NotPassed, match="once a submission of yours has passed"):
            solution_of(LAB.lab, LAB.folder, progress)
    solution = solution_of(LAB.lab, LAB.folder, PASSED)
    assert solution.reference == LAB.reference and solution.file == "kernel.cu"
    assert "whole blocks only" in [mistake.name for mistake in solution.mistakes]


def test_on_a_hub_the_course_decides_when_the_reference_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on(answer: str | Exception, progress: Progress) -> str:
        monkeypatch.setattr(lab_solutions, "hub_here", lambda: Hub(answer))
        return solution_of(LAB.lab, LAB.folder, progress).reference

    refusal = HubProblem("The reference is shown once nobody can hand in any more.")
    with pytest.raises(NotPassed, match="nobody can hand in any more"):
        on(refusal, PASSED)
    # after the due date, whoever has passed
    assert on("// the course's own", Progress()) == "// the course's own"
    with pytest.raises(KeptApart, match="comes with the first result"):
        on("", PASSED)
    # no course has it: it is practice
    assert on(NotPublished("none"), PASSED) == LAB.reference
    with pytest.raises(NotPassed):
        on(NotPublished("none"), Progress())


def test_learners_of_a_parted_catalogue_have_neither_reference_nor_discussion(
    tmp_path: Path,
) -> None:
    source = tmp_path / "catalogue" / "kernels"
    source.mkdir(parents=True)
    (source / "vector_add").symlink_to(LAB.folder)
    part(tmp_path / "learners", tmp_path / "vault", tmp_path / "catalogue")
    apart = tmp_path / "learners" / "kernels" / "vector_add"
    assert not list(apart.glob("discussion*"))
    assert (tmp_path / "vault" / "kernels" / "vector_add" / "discussion.md").is_file()
    with pytest.raises(KeptApart, match="kept apart from this machine"):
        read_solution(apart)


def test_numbers_run_without_holes_in_reading_order_and_lead_to_the_next_lab() -> None:
    labs, bad = overview(ALL_HERE, {"area-codes": SoFar("passed")})
    assert bad == ()
    assert [lab.number for lab in labs] == list(range(1, len(labs) + 1))
    tracks = [lab.track for lab in labs]
    # a track is read as a whole
    assert len(list(dict.fromkeys(tracks))) == sum(
        one != other for one, other in zip(tracks, ["", *tracks], strict=False)
    )
    assert all(lab.difficulty for lab in labs)

    def following(lab: str = "") -> str | None:
        next_one = next_lab(labs, lab)
        return None if next_one is None else next_one.id

    assert following() == "vector-add"
    assert following("vector-add") == "thread-and-block"
    # after the last one, what was left out
    assert following(labs[-1].id) == "vector-add"
    at = [lab.id for lab in labs].index("thread-and-block")
    without = msgspec.structs.replace(labs[at], can_check=False, why="No Triton.")
    fewer = [*labs[:at], without, *labs[at + 1 :]]
    done = [
        msgspec.structs.replace(lab, progress=SoFar("passed")) for lab in fewer[:at]
    ]
    beyond = next_lab([*done, *fewer[at:]])
    assert beyond is not None and beyond.id == labs[at + 1].id
    skipped = skipped_words([*done, *fewer[at:]])
    assert f"{without.number} {without.title}. No Triton." in skipped
    # it lies behind the next one
    assert skipped_words(fewer) == ""
    passed = [msgspec.structs.replace(lab, progress=SoFar("passed")) for lab in labs]
    assert next_lab(passed) is None
    unknown = [msgspec.structs.replace(lab, progress=None) for lab in labs]
    assert next_lab(unknown) is None


def test_pictures_have_a_size_of_their_own() -> None:
    for picture in CATALOGUE.glob("*/*/*.svg"):
        head = picture.read_text()[:400]
        match = re.search(r'<svg[^>]* width="(\d+)" height="(\d+)"', head)
        assert match is not None and int(match[1]) <= 720, picture
