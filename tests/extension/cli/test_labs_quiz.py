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
    assert listed["left_out"] == {} and len(listed["questions"]) == 21
    for question in listed["questions"]:
        assert set(question) == {"lab", "ask", "code", "choices"}


def test_answers_are_marked_and_nothing_is_kept(warpbook, home: Path) -> None:
    # the third is not known, and all others are right
    done = warpbook("labs", "quiz", "ca?bbdbbbcbdcdcacbdca", "--json")
    marked = json.loads(done.stdout)
    assert (marked["begin"], len(marked["marks"])) == ("vector-add", 21)
    wrong = [mark for mark in marked["marks"] if mark["chosen"] != mark["right"]]
    assert [(mark["chosen"], mark["right"]) for mark in wrong] == [("?", "d")]
    assert not list(home.rglob("labs.db")) and not list(home.rglob("*quiz*"))


def test_who_sits_at_a_terminal_is_asked_one_by_one(
    environment, tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "labs", "quiz", "--text", "dgx-and-infiniband"],
        env=environment,
        cwd=tmp_path,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # what is no answer is asked again
        with open(ours, "w") as terminal:
            terminal.write("x\nb\nb\nB\nb\na\n?\n")
            terminal.flush()
            out, problem = process.communicate(timeout=120)
    os.close(theirs)
    assert process.returncode == 0, problem
    assert out.count(", or ?: ") == 7
    assert "5 of 6 answers are right." in out
    assert "6. Not answered: the right choice is a, " in out


def test_a_text_is_listed_opened_and_asked_about(warpbook, tmp_path: Path) -> None:
    listed = warpbook("labs").stdout
    assert re.search(r"^  choosing-a-dtype +15 min   Choosing a dtype", listed, re.M)
    texts = json.loads(warpbook("labs", "list", "--json").stdout)["texts"]
    assert [text["id"] for text in texts][1:] == [
        "cudnn-algorithms",
        "dgx-and-infiniband",
        "inference-ladder",
        "accelerator-generations",
        "memory-hierarchy",
    ]
    opened = warpbook("labs", "open", "dgx-and-infiniband")
    assert opened.returncode == 0, opened.stderr
    assert (tmp_path / "dgx-and-infiniband" / "dgx.svg").is_file()
    command = "warpbook labs quiz --text dgx-and-infiniband"
    assert command in opened.stdout
    sheet = warpbook("labs", "quiz", "--text", "dgx-and-infiniband", stdin="")
    assert f"{command} a b c a b c" in sheet.stdout
    # in reading order, of which the second is wrong
    marked = warpbook("labs", "quiz", "--text", "dgx-and-infiniband", "babbaa")
    assert "2. You chose a; the right choice is b, " in marked.stdout
    assert "5 of 6 answers are right." in marked.stdout
    assert "Begin with" not in marked.stdout
    unknown = warpbook("labs", "quiz", "--text", "nowhere")
    assert unknown.returncode == 2 and "no text `nowhere`" in unknown.stderr


def test_answers_that_are_none_are_refused_in_words(warpbook) -> None:
    for answers, words in (
        (("a",), "questions and 1 answers"),
        (("z" * 21,), "Question 1: give one of a, b, c, d, or ?"),
    ):
        done = warpbook("labs", "quiz", *answers)
        assert done.returncode == 2 and words in done.stderr
