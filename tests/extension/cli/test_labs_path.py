"""`warpbook labs path`: a path chosen, followed, and no longer, by the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpbook_labs.course.store import Store
from warpbook_labs.results.check import CaseResult, CheckResult


def passed(lab: str) -> None:
    store = Store()
    number = store.add_submission(lab, "// mine", 7)
    case = CaseResult("a prime number", True, True, "")
    store.add_result(number, CheckResult(lab, "passed", "Right.", (case,), 1, 1))


def test_a_path_is_chosen_and_the_next_lab_follows_it(
    warpbook, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))

    def output(*arguments: str) -> str:
        done = warpbook("labs", *arguments, XDG_DATA_HOME=str(home / "data"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "What is on one: warpbook labs path NAME" in output("path")
    for lab in ("area-codes", "vector-add"):
        passed(lab)
    week = output("path", "week")
    assert "2 of 13 labs are passed." in week
    assert "->  not begun  thread-and-block" in week
    assert "matmul              90 min  after tiled-transpose, reduction-and-" in week
    assert "To follow it: warpbook labs path week --choose" in week
    # to look at a path chooses none
    assert json.loads(output("path", "--json"))["path"] is None

    assert "You follow it" in output("path", "afternoon", "--choose")
    # in reading order thread-and-block is the next one
    assert "Next: Roofline: name the bound: warpbook labs open roofline" in output()
    listed = json.loads(output("path", "--json"))
    assert (listed["path"], listed["next_lab"]) == ("afternoon", "roofline")
    assert [path["passed"] for path in listed["paths"]] == [2, 2, 2]
    output("path", "--clear")
    assert "warpbook labs open thread-and-block" in output()


def test_what_can_not_be_chosen_is_refused_in_words(warpbook) -> None:
    for arguments, words in (
        (("nowhere",), "There is no path `nowhere`. There are: afternoon"),
        (("nowhere", "--choose"), "There is no path `nowhere`."),
        (("--choose",), "name the path: warpbook labs path week --choose"),
    ):
        done = warpbook("labs", "path", *arguments)
        assert done.returncode == 2 and words in done.stderr
