"""The placement quiz: engines take one choice each, and say where to begin."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from warpbook_labs.course.authoring import part
from warpbook_labs.course.overview import overview
from warpbook_labs.course.quiz import (
    BadAnswers,
    Choice,
    left_out_words,
    mark_words,
    placement,
    question_lines,
    questions_here,
    read_answers,
    read_quiz,
)
from warpbook_labs.course.quiz_grading import judge_choice, mark_answers
from warpbook_labs.errors import BadQuiz
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.languages.language import Here

LABS, _ = overview(Here("13.3", "", True, True, 0), {})
QUIZ = read_quiz("placement")
BY_LAB = {question.lab: question for question in QUIZ.questions}


@pytest.mark.parametrize(
    "question", QUIZ.questions, ids=lambda question: question.ask[:40]
)
def test_the_engine_takes_one_choice_of_each_question(question) -> None:
    findings = {
        choice.text: judge_choice(question, choice) for choice in question.choices
    }
    assert sum(is_right for is_right, _ in findings.values()) == 1
    assert len(findings) == len(question.choices)
    # why a wrong one is wrong, and no line of a source that is not shown
    for is_right, finding in findings.values():
        assert is_right == (finding == "")
        assert "line" not in finding.lower()


def test_questions_stand_in_reading_order() -> None:
    assert 18 <= len(QUIZ.questions) <= 24
    ids = [lab.id for lab in LABS]
    places = [ids.index(question.lab) for question in QUIZ.questions]
    assert places == sorted(places)


def test_the_race_of_the_streams_is_found_as_one() -> None:
    question = BY_LAB["fix-the-stream"]
    (race,) = [
        choice for choice in question.choices if judge_choice(question, choice)[0]
    ]
    passing = msgspec.structs.replace(question, grade="passes")
    assert "may not yet have written" in judge_choice(passing, race)[1]


def test_marks_say_what_was_wrong_and_what_is_right() -> None:
    questions = [BY_LAB["occupancy"], BY_LAB["roofline"], BY_LAB["area-codes"]]
    right = [mark.right for mark in mark_answers(questions, "???")]
    marks = list(mark_answers(questions, ["c", right[1], right[2]]))
    assert [mark.is_right for mark in marks] == [False, True, True]
    words = mark_words(marks[0])
    assert words.startswith("You chose c; the right choice is b, ")
    assert words.endswith(f"{questions[0].because} Lab: occupancy.")
    assert mark_words(marks[1]).startswith(f"Right: {right[1]}, ")


def test_a_question_without_a_right_choice_is_refused() -> None:
    question = BY_LAB["occupancy"]
    wrong = msgspec.structs.replace(question, choices=(Choice("3", 3), Choice("5", 5)))
    with pytest.raises(BadQuiz, match="occupancy: no choice is right"):
        list(mark_answers([wrong], ["a"]))
    broken = msgspec.structs.replace(BY_LAB["area-codes"], source="no kernel")
    with pytest.raises(BadQuiz, match="area-codes"):
        list(mark_answers([broken], ["a"]))


def test_one_begins_where_the_first_answer_is_wrong_in_reading_order() -> None:
    asked = {"area-codes", "thread-and-block", "roofline"}
    wrong = {"thread-and-block", "roofline"}
    assert placement(asked, wrong, LABS).begin == "thread-and-block"
    right = {"area-codes", "vector-add", "roofline"}
    assert placement(right, (), LABS).begin == "thread-and-block"
    assert placement({lab.id for lab in LABS}, (), LABS).begin == LABS[-1].id


def test_every_track_but_that_of_traces_has_a_question() -> None:
    # a trace is read with its file at hand
    tracks = {lab.id: lab.track for lab in LABS}
    covered = {tracks[question.lab] for question in QUIZ.questions}
    assert set(tracks.values()) - covered == {"profile"}


def test_what_can_not_be_checked_here_is_not_asked(tmp_path: Path) -> None:
    without, _ = overview(Here("13.3", "", False, True, 0), {})
    questions, why = questions_here(QUIZ.questions, without)
    assert set(why) == {"thread-and-block", "flash-attention"}
    assert len(questions) == len(QUIZ.questions) - 2
    words = "Questions on thread-and-block, flash-attention are left out. "
    assert words in left_out_words(why)
    # learners of a course may have no judge of answers
    source = tmp_path / "catalogue" / "memory"
    source.mkdir(parents=True)
    for name in ("occupancy", "roofline"):
        (source / name).symlink_to(CATALOGUE / "memory" / name)
    part(tmp_path / "learners", tmp_path / "vault", tmp_path / "catalogue")
    apart, why = questions_here(QUIZ.questions, LABS, tmp_path / "learners")
    assert {question.grade for question in apart} == {"passes", "fails", "counts"}
    assert set(why) == {
        question.lab for question in QUIZ.questions if question.grade == "answers"
    }
    none, why = questions_here(QUIZ.questions, [])
    assert none == () and set(why) == set(BY_LAB)


def test_answers_are_letters_or_unknown_and_one_for_each_question() -> None:
    questions = QUIZ.questions[:3]
    assert read_answers(["a", "?", "D"], questions) == ("a", "?", "d")
    assert read_answers(["a?d"], questions) == ("a", "?", "d")
    for words, problem in (
        (["a"], "3 questions and 1 answers"),
        (["a", "b", "e"], "Question 3: give one of a, b, c, d, or ?"),
        (["a", "", "b"], "Question 2"),
        (["a", "ab", "b"], "Question 2"),
    ):
        with pytest.raises(BadAnswers, match=problem.replace("?", r"\?")):
            read_answers(words, questions)


def test_a_question_shows_its_code_with_a_gap() -> None:
    lines = list(question_lines(1, BY_LAB["area-codes"]))
    assert "        int i = ____;" in lines
    assert "  c  (z * h + y) * w + x" in lines
    assert not any("launch" in line for line in lines)


def test_a_quiz_that_is_not_there_or_malformed_is_refused(tmp_path) -> None:
    with pytest.raises(BadQuiz, match=r"gone\.toml: this file is missing"):
        read_quiz("gone", tmp_path)
    (tmp_path / "bad.toml").write_text('id = "bad"\ntitle = "Bad"\nquestions = []\n')
    with pytest.raises(BadQuiz, match=r"bad\.toml: .*questions"):
        read_quiz("bad", tmp_path)


def test_a_choice_that_is_there_twice_is_refused_with_its_question(tmp_path) -> None:
    quiz = 'id = "twice"\ntitle = "Twice"\n'
    for texts in (("x", "y"), ("i < n", "i <= n", "i < n ")):
        choices = ", ".join(f'{{ text = "{text}" }}' for text in texts)
        quiz += (
            '[[questions]]\nlab = "roofline"\nask = "Which one?"\n'
            f'grade = "stated"\nbecause = "It is."\nchoices = [{choices}]\n'
        )
    (tmp_path / "twice.toml").write_text(quiz)
    message = r"twice\.toml: `choices` has 'i < n' twice - at `\$\.questions\[1\]`"
    with pytest.raises(BadQuiz, match=message):
        read_quiz("twice", tmp_path)
