"""Dialogues: functions that are called step by step, case step by the last answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab_checks import check_plan
from warpbook_labs.course.session import find
from warpbook_labs.engines.answers import dialogue
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_labs.sandbox.work import Limits

LAB = """
id = "guessing"
number = 902
title = "Guess a number"
track = "serving"
goal = "Search."
asks = "A function."
language = "plan"
plan.call_s = 0.3

[[plan.functions]]
name = "guess"
about = "Guess a number of 1 to 100."
returns = "int"
is_dialogue = true
arguments = [{ name = "said", about = "what was said of the last guess" }]
"""
#: in the jail, as any lab of somebody else's
CASES = """
from warpbook_labs.lab.python.questions import Question


def questions(rng):
    numbers = [rng.randint(1, 100) for _ in range(3)]
    return [Question("guess", {"number": x}, f"number {x}") for x in numbers]


def judge(question, answer):
    return ""


def advance(question, state, answer):
    if answer is None:
        return 0, {"said": "begin"}, ""
    if answer == question.arguments["number"]:
        return state, None, ""
    if state == 6:
        return state, None, f"Seven guesses were wrong, the last one is {answer}."
    said = "more" if answer < question.arguments["number"] else "less"
    return state + 1, {"said": said}, ""
"""
RIGHT = """
low, high, last = 1, 100, None


def guess(said):
    global low, high, last
    if said == "more":
        low = last + 1
    elif said == "less":
        high = last - 1
    last = (low + high) // 2
    return last
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "guessing"
    for kind in ("correct", "wrong"):
        (place / "solutions" / kind).mkdir(parents=True)
        (place / "solutions" / kind / "a.py").write_text(f"# {kind}\n{RIGHT}")
    files = {
        "lab.toml": LAB,
        "cases.py": CASES,
        "text.md": "Text",
        "hints.md": "A hint",
    }
    files |= {"starter.py": "def guess(said):\n    return 1\n", "reference.py": RIGHT}
    for name, content in files.items():
        (place / name).write_text(content)
    return place


@pytest.fixture
def lab(folder: Path) -> LoadedLab:
    return load(folder)


def test_each_step_depends_on_the_last_and_each_dialogue_begins_anew(
    lab: LoadedLab,
) -> None:
    # notes of a dialogue before it would make it guess within the wrong bounds
    assert check_plan(lab, RIGHT, seed=5).status == "passed"
    result = check_plan(lab, lab.starter, seed=5)
    assert result.status == "failed"
    assert all("Seven guesses were wrong" in case.message for case in result.cases)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 'fifty'", "It must return int, and returns str: 'fifty'"),
        ("return 1 // 0", "division"),
        ("raise SystemExit(0)", "SystemExit"),
        ("while True: pass", "Timed out after 0.3 s"),
        ("import os\n    os._exit(0)", "Its process ended"),
        (
            "import os\n    for file in range(3, 9):\n"
            "        try:\n            os.write(file, b'x' * 99)\n"
            "        except OSError:\n            pass",
            "Its process ended",
        ),
    ],
)
def test_what_goes_wrong_in_a_step_is_told(
    lab: LoadedLab, body: str, words: str
) -> None:
    result = check_plan(lab, f"def guess(said):\n    {body}\n")
    assert result.status == "failed"
    assert words in result.cases[0].message


def test_of_hidden_dialogues_only_kind_and_line_of_an_error_are_told(
    lab: LoadedLab,
) -> None:
    source = "def guess(said):\n    raise ValueError(f'it said {said}')\n"
    result = check_plan(lab, source, seed=1)
    hidden = [case for case in result.cases if case.is_hidden]
    assert hidden and all("it said" not in case.message for case in hidden)
    assert all("ValueError" in case.message for case in hidden)


def test_all_dialogues_together_may_sleep_so_long_and_hidden_ones_are_told_so(
    lab: LoadedLab,
) -> None:
    source = "import time\n\n\ndef guess(said):\n    time.sleep(60)\n    return 1\n"
    result = check_plan(lab, source, seed=1, limits=Limits(asleep_s=1))
    assert result.status == "failed"
    # the three that are shown, and the first hidden one
    assert [case.message for case in result.cases] == [
        "Timed out: it slept for 1 s."
    ] * 4


def test_a_lab_whose_dialogue_never_ends_is_bad(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialogue, "_MOST_STEPS", 50)
    endless = CASES.replace("if state == 6:", "if state == -1:")
    (folder / "cases.py").write_text(endless)
    with pytest.raises(BadLab, match=r"advance: EndlessDialogue: .* 50 steps"):
        check_plan(load(folder), "def guess(said):\n    return 0\n")


JUDGE = """

def judge(question, state):
    return "Unlucky." if question.about == "number 99" else ""
"""


def test_a_share_makes_up_for_bad_luck_and_for_no_error_or_broken_rule(
    folder: Path,
) -> None:
    words = "is_dialogue = true"
    (folder / "lab.toml").write_text(LAB.replace(words, f"{words}\nshare = 0.6"))
    drawn = "[rng.randint(1, 100) for _ in range(3)]"
    (folder / "cases.py").write_text(CASES.replace(drawn, "[99, 26, 1]") + JUDGE)
    lab = load(folder)
    result = check_plan(lab, RIGHT)
    assert result.status == "passed" and result.cases[0].message == "Unlucky."
    assert result.message == "2 of 3 answers are right, enough for each function."
    for wrong, told in (
        ("1 // (last != 99) and last", "division"),
        ("last if last != 99 else 'none'", "It must return int"),
        ("last if last != 99 else 100", "Seven guesses were wrong"),
    ):
        result = check_plan(lab, RIGHT.replace("return last", f"return {wrong}"))
        assert result.status == "failed" and told in result.cases[0].message
        assert result.message == (
            "guess: 2 of 3 correct; 1 broke a rule or ended with an error: none may."
        )


def test_a_lab_without_advance_is_bad(folder: Path) -> None:
    (folder / "cases.py").write_text(CASES.partition("def advance")[0])
    with pytest.raises(BadLab, match="advance"):
        check_plan(load(folder), RIGHT)


def test_what_steps_print_is_shown_and_nothing_of_hidden_ones(lab: LoadedLab) -> None:
    source = "def guess(said):\n    print('it said', said)\n    return 1\n"
    result = check_plan(lab, source, seed=1)
    for case in result.cases:
        assert ("it said" in case.printed) == (not case.is_hidden)


@pytest.mark.parametrize(
    ("lab_id", "function", "about", "kept"),
    [
        ("continuous-batching", "schedule(engine, state)", "a burst", "_Simulation"),
        ("dynamic-batching", "batch(server, state)", "bursts", "_Simulation"),
        ("tune-on-a-budget", "search(cluster, state)", "one GPU", "_Trial"),
    ],
)
def test_answers_that_look_for_what_is_to_come_find_none(
    lab_id: str, function: str, about: str, kept: str
) -> None:
    lab, name = find(lab_id), function.partition("(")[0]
    peeks = f"""
def {function}:
    import gc, sys
    names = [name for name in sys.modules if "cases" in name or "warpbook_lab_" in name]
    held = [one for one in gc.get_objects() if type(one).__name__ == "{kept}"]
    raise RuntimeError(f"found {{len(names)}} and {{len(held)}}")
"""
    result = check_plan(lab, lab.reference.partition(f"def {name}")[0] + peeks)
    [case] = [case for case in result.cases if case.about == f"{name}: {about}"]
    assert not case.passed
    assert "gc" in case.message or "found 0 and 0" in case.message
