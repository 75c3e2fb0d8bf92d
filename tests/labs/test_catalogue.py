"""Every lab grades fairly: its own solutions, right and wrong, say so."""

from __future__ import annotations

import random
import re

import pytest

from tests.labs.answers import module_of
from warpbook_labs.course.session import find
from warpbook_labs.grading.validation import validate
from warpbook_labs.lab.edits import EditedFile
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load, load_all
from warpbook_monitors import toml_text

FOLDERS = sorted(file.parent for file in CATALOGUE.glob("*/*/lab.toml"))


EACH_LAB = pytest.mark.parametrize("folder", FOLDERS, ids=lambda lab: lab.name)


@EACH_LAB
def test_right_solutions_pass(folder) -> None:
    loaded = load(folder)
    assert len(loaded.correct) >= 2
    # `warpbook labs validate` draws more often
    verdicts = list(validate(loaded, seeds=(101,), should="pass"))
    assert [verdict for verdict in verdicts if not verdict.ok] == []
    assert len(verdicts) > len(loaded.correct)


@EACH_LAB
def test_wrong_solutions_fail(folder) -> None:
    loaded = load(folder)
    assert len(loaded.wrong) >= 4
    verdicts = list(validate(loaded, seeds=(101,), should="fail"))
    assert [verdict for verdict in verdicts if not verdict.ok] == []
    wrong = [
        verdict.reason
        for verdict in verdicts
        if verdict.file.startswith("solutions/wro")
    ]
    assert len(wrong) == len(loaded.wrong)
    # a wrong solution is right but for its mistake: it compiles and is launched
    assert not [
        reason for reason in wrong if reason.startswith(("compile", "bad launch"))
    ]


@pytest.mark.parametrize("seed", range(300, 304))
@pytest.mark.parametrize(
    "lab_id", ["checkpointing", "collectives", "pipeline-schedules", "which-sdpa"]
)
def test_each_draw_of_questions_finds_what_is_wrong_and_that_alone(
    lab_id: str, seed: int
) -> None:
    lab = find(lab_id)
    questions = lab.cases.questions(random.Random(seed))
    for name, source in (lab.correct | lab.wrong).items():
        answers = module_of(source)
        wrong = [
            question.about
            for question in questions
            if lab.cases.judge(
                question,
                getattr(answers, question.function)(*question.arguments.values()),
            )
        ]
        assert bool(wrong) == (name in lab.wrong), (name, wrong)


def test_the_catalogue_loads_with_its_numbers_in_order_and_what_labs_build_on() -> None:
    labs = load_all()
    numbers = [lab.lab.number for lab in labs.values()]
    assert numbers == sorted(set(numbers))
    for lab in labs.values():
        assert 2 <= len(lab.hints) <= 8
        before = list(labs)[: list(labs).index(lab.lab.id)]
        # a lab that is not there yet may be named; one that comes later may not
        assert not set(lab.lab.after) & (set(labs) - set(before))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("'", ""))


def test_the_reasons_of_wrong_solutions_say_more_than_their_names() -> None:
    files = sorted(CATALOGUE.glob("*/*/solutions/wrong.toml"))
    assert files
    unclear = [
        f"{file.parents[1].name}: {solution.name}"
        for file in files
        for solution in toml_text.decode(file.read_bytes(), EditedFile).wrong
        if _words(solution.reason) == _words(solution.name.replace("_", " "))
        or not solution.reason.endswith(".")
    ]
    assert unclear == []
