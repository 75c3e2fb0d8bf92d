"""Questions on a learner's own source: drawn after a pass, answered once, then told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import structs

from tests.hub.core.course import LAB_DIGEST, Classroom, classroom, facts
from warpbook.hub_protocol import CodeQuestion, JobOrder, JobResult, LeaseName
from warpbook_hub.course.next_term import Term, copy_course
from warpbook_hub.course.publications import publication, publications, publish
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.grader.labs import grade
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.queue import completion
from warpbook_hub.work.code_questions import answer_question, code_questions
from warpbook_hub.work.decisions import regrade
from warpbook_hub.work.submissions import digest_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load

DATABASES = ("sqlite", "postgres")
RACE = CodeQuestion("Which <lines> race?", ("Lines 1 and 2.", "None."), 1, "It passes.")


def finish(room: Classroom, grader: str, *questions: CodeQuestion) -> bool:
    (order,) = room.lease(grader)
    assert order.asks_questions
    name = LeaseName(order.job, order.fence)
    result = JobResult(
        name, facts(), LAB_DIGEST, order.source_digest, 1000, questions=questions
    )
    with room.database.write() as connection:
        return completion.finish(connection, room.now_ms, grader, result).is_accepted


def test_what_is_right_is_told_once_a_learner_has_answered(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", asks_questions=True)
    grader = room.grader()
    submission = room.submit("ada").submission
    assert finish(room, grader, RACE)
    with room.database.write() as connection:
        (asked,) = code_questions(connection, submission, is_staff=False)
        assert (asked.choices, asked.choice) == (RACE.choices, None)
        assert (asked.right, asked.because) == (None, "")
        (seen,) = code_questions(connection, submission, is_staff=True)
        assert (seen.right, seen.because) == (1, "It passes.")
        for number, choice in ((2, 0), (0, 0), (1, 2)):
            with pytest.raises(BadRequest):
                answer_question(connection, 5, submission, number, choice)
        answer_question(connection, 5, submission, 1, 0)
        # sent once more it changes nothing, and another answer is none
        answer_question(connection, 6, submission, 1, 0)
        with pytest.raises(Conflict):
            answer_question(connection, 7, submission, 1, 1)
        (told,) = code_questions(connection, submission, is_staff=False)
        assert (told.choice, told.answered_ms, told.right) == (0, 5, 1)
        who = (connection, room.now_ms, room.instructor)
        regrade(*who, [submission], "once more")
    # a regrade asks nothing else
    assert finish(room, grader, RACE, RACE)
    with room.database.write() as connection:
        assert len(code_questions(connection, submission, is_staff=False)) == 1
        who = (connection, room.now_ms, room.instructor)
        erase(*who, room.people["ada"], "asked for it")
        assert code_questions(connection, submission, is_staff=True) == []
    room.database.close()


def test_a_question_without_a_right_choice_is_not_kept(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", asks_questions=True)
    room.submit("ada")
    assert not finish(room, room.grader(), structs.replace(RACE, right=2))
    room.database.close()


def test_a_lab_asks_nothing_unless_it_is_told_to(room: Classroom) -> None:
    room.submit("ada")
    (order,) = room.lease(room.grader())
    assert not order.asks_questions
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.instructor)
        lab = structs.replace(publication(connection, room.lab), asks_questions=True)
        publish(*who, lab)
        copy_course(*who, "gpu101", Term("gpu102", "Again", 364, "UTC"))
        (next_lab,) = publications(connection, "gpu102")
        assert next_lab.asks_questions
        for language in ("host", "plan"):
            other = structs.replace(lab, lab="other", language=language)
            with pytest.raises(BadRequest, match="Triton can be asked about"):
                publish(*who, other)


def test_a_grader_asks_two_questions_whose_answers_no_card_has() -> None:
    source = load(CATALOGUE / "kernels" / "vector_add").reference
    order = JobOrder("j", 1, "cpu", "vector-add", "", source, digest_of(source), 5)
    plain = grade(order)
    assert plain.questions == ()
    assert "Most work by line" in plain.evidence
    graded = grade(structs.replace(order, asks_questions=True))
    assert graded.facts.verdict == "right"
    assert len(graded.questions) == 2
    for question in graded.questions:
        assert question.right < len(question.choices)
    # staff have the whole result beside it
    card = json.loads(graded.evidence)["card"]
    assert "Most work by line" not in json.dumps(card)
    # what is wrong is asked nothing
    wrong = source.replace("+", "-", 1) if "+" in source else source[:-2]
    failed = grade(
        structs.replace(
            order, source=wrong, source_digest=digest_of(wrong), asks_questions=True
        )
    )
    assert failed.facts.verdict == "wrong"
    assert failed.questions == ()
