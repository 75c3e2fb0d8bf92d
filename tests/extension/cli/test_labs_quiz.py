"""`warpbook labs quiz`: asked, answered and marked, by the real command."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path

from tests.extension.cli.conftest import COMMAND


def test_the_sheet_has_questions_and_no_answers(warpbook) -> None:
    sheet = warpbook("labs", "quiz", stdin="")
    assert sheet.returncode == 0, sheet.stderr
    assert "int i = ____;" in sheet.stdout and "warpbook labs quiz a b" in sheet.stdout
    listed = json.loads(warpbook("labs", "quiz", "--json", stdin="").stdout)
    assert listed["left_out"] == {} and len(listed["questions"]) == 15
    for question in listed["questions"]:
        assert set(question) == {"lab", "ask", "code", "choices"}


def test_who_sits_at_a_terminal_is_asked_one_by_one_and_nothing_is_kept(
    warpbook, environment, tmp_path: Path, home: Path
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "labs", "quiz"],
        env=environment,
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # what is no answer is asked again
        with open(ours, "w") as terminal:
            terminal.write("x\n" + "?\n" * 15)
            terminal.flush()
            out, problem = process.communicate(timeout=120)
    os.close(theirs)
    assert process.returncode == 0, problem
    assert out.count("a to d, or ?: ") == 16
    words = " ".join(out.split())
    assert "0 of 15 answers are right. Begin with 1 Area codes" in words

    right = re.findall(r"\d+\. \?: right is ([a-d])\.", words)
    answers = [*right[:2], "?", *right[3:]]
    marked = json.loads(warpbook("labs", "quiz", *answers, "--json").stdout)
    assert [mark["chosen"] for mark in marked["marks"]] == answers
    assert [mark["right"] for mark in marked["marks"]] == right
    assert marked["begin"] == marked["marks"][2]["lab"] == "vector-add"
    assert not list(home.rglob("labs.db")) and not list(home.rglob("*quiz*"))


def test_answers_that_are_none_are_refused_in_words(warpbook) -> None:
    for answers, words in (
        (("a",), "questions and 1 answers"),
        (("z" * 15,), "Question 1: give one of a, b, c, d, or ?"),
    ):
        done = warpbook("labs", "quiz", *answers)
        assert done.returncode == 2 and words in done.stderr
