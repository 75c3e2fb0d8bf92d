"""Plans: functions that are asked questions, and judged by properties."""

from __future__ import annotations

import json
import math
import random
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.lab_checks import check_plan
from tests.programs import ROOT
from warpbook.cli.main import main
from warpbook_labs.course.notebook import task_words
from warpbook_labs.course.session import check_public, find, submit, trust
from warpbook_labs.course.store import Store
from warpbook_labs.errors import BadLab
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load
from warpbook_profiler.facts.occupancy import MULTIPROCESSORS, occupancy

LAB = """
id = "powers"
number = 901
title = "Powers"
track = "training"
goal = "Square numbers."
asks = "A function."
language = "plan"

[[plan.functions]]
name = "square"
about = "Square a number."
returns = "int"
share = 0.75
arguments = [{ name = "x", about = "a number" }]
"""
CASES = """
from warpbook_labs.lab.python.questions import Question


def questions(rng):
    numbers = [1, 2, 3, rng.randint(4, 10**6)]
    return [Question("square", {"x": x}, f"number {i}") for i, x in enumerate(numbers)]


def judge(question, answer):
    right = question.arguments["x"] ** 2
    return "" if answer == right else f"Returned {answer}; expected {right}."
"""
RIGHT = "def square(x):\n    return x * x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a small lab."""
    place = tmp_path / "powers"
    for kind in ("correct", "wrong"):
        (place / "solutions" / kind).mkdir(parents=True)
    wrong = "def square(x):\n    return x + x\n"
    texts = {
        "lab.toml": LAB,
        "cases.py": CASES,
        "text.md": "# Powers",
        "hints.md": "Multiply.\n\n---\n\nBy itself.",
        "starter.py": "def square(x):\n    return 0\n",
        "reference.py": RIGHT,
        "solutions/correct/a.py": RIGHT,
        "solutions/wrong/a.py": wrong,
    }
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    return place


@pytest.fixture
def lab(folder: Path) -> LoadedLab:
    return load(folder)


def test_a_learner_is_told_how_long_calls_may_take(lab: LoadedLab) -> None:
    plan = lab.lab.plan
    assert plan is not None
    words = f"{plan.call_s:g} s of CPU time, and all calls of a check together 15 s."
    assert words in task_words(lab) and "apart" not in task_words(lab)
    dialogues = task_words(find("dynamic-batching"))
    assert "15 s. Calls of `batch` are counted apart from the others." in dialogues


def test_right_answers_pass_and_are_kept_with_hidden_questions(
    lab: LoadedLab, tmp_path: Path
) -> None:
    shown = check_public(lab, RIGHT)
    assert (shown.passed, shown.grading, shown.result.of) == (True, "practice", 4)
    assert shown.result.message == "All 4 answers are right."
    assert "an empty root" in shown.result.isolation
    handed_in = submit(Store(tmp_path / "store"), lab, RIGHT)
    assert (handed_in.passed, handed_in.grading) == (True, "self-graded")
    assert [case.is_hidden for case in handed_in.result.cases] == [False] * 4 + [
        True
    ] * 4


def test_as_many_right_answers_as_the_lab_requires_pass(lab: LoadedLab) -> None:
    result = check_plan(lab, "def square(x):\n    return x * x + (x == 2)\n")
    assert result.status == "passed"
    assert result.message == "3 of 4 answers are right, enough for each function."
    result = check_plan(lab, "def square(x):\n    return x * x // (x != 2)\n")
    assert result.status == "failed" and "ZeroDivisionError" in result.cases[1].message
    assert "1 broke a rule or ended with an error: none may." in result.message


def test_a_wrong_answer_is_told_with_its_question_unless_that_is_hidden(
    lab: LoadedLab,
) -> None:
    source = "def square(x):\n    print('at', x)\n    return x * x + (x != 2)\n"
    result = check_plan(lab, source, seed=7)
    assert (result.status, result.right, result.of) == ("failed", 2, 8)
    assert "square: 2 of 8 correct, 75 % are required." in result.message
    first, second, *_ = result.cases
    assert first.message == "Returned 2; expected 1. Call: square(1)"
    assert second.passed and second.printed == "at 2\n"
    # of those hidden one failure is told, and neither its numbers nor what it printed
    hidden = [case for case in result.cases if case.is_hidden]
    assert [case.passed for case in hidden] == [False, True]
    assert "asked" not in hidden[0].message and hidden[0].printed == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError(repr(x))", "Line 3: ValueError; details are shown for"),
        (
            "raise type(repr(x), (Exception,), {})",
            "Line 3: It raised an exception; details",
        ),
        ("return repr(x)", "It must return int, and returns str."),
        ("return lambda: x", "It can't be called so, or returned no plain data."),
        ("while True: pass", "Line 3: Timed out after 1 s."),
        ("return b'x' * (1 << 20)", "It returned more than 64 KiB."),
    ],
)
def test_what_goes_wrong_is_told_of_a_hidden_question_without_its_numbers(
    lab: LoadedLab, body: str, words: str
) -> None:
    # only what is drawn has more than one digit
    source = f"def square(x):\n    if x < 4: return x * x\n    {body}\n"
    result = check_plan(lab, source, seed=7)
    [hidden] = [case for case in result.cases if case.is_hidden and not case.passed]
    assert hidden.message.startswith(words), hidden.message
    assert not re.search(r"\d\d", hidden.message.replace("64 KiB", ""))


def test_long_arguments_are_shown_by_head_and_length_and_whole_on_demand(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1234567.5 would be another number wherever it were cut
    cases = CASES.replace('{"x": x}', '{"x": [x] + [1234567.5] * 100}').replace(
        'question.arguments["x"] ** 2', 'sum(question.arguments["x"])'
    )
    (folder / "cases.py").write_text(cases)
    source = "def square(x):\n    return sum(x) + (x[0] > 1)\n"
    result = check_plan(load(folder), source, seed=7)
    wrong, *_ = (case for case in result.cases if not case.passed)
    items = re.search(r"Call: square\(\[2(, 1234567\.5)+, \.\.\. 101 in", wrong.message)
    assert items and 4 <= items[0].count("1234567.5")
    assert wrong.message.endswith("(whole: warpbook labs check powers --question)")
    # one is whole, since results are kept
    assert [case.question != "" for case in result.cases].count(True) == 1
    assert wrong.question.startswith("square(")
    # those that are hidden stay so
    hidden = [case for case in result.cases if case.is_hidden and not case.passed]
    assert hidden and hidden[0].question == ""

    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    trust(folder)
    file = folder / "mine.py"
    file.write_text(source)
    arguments = ["labs", "check", str(folder), str(file), "--question"]
    assert main(arguments) == 1
    given: list[float] = []
    exec(capsys.readouterr().out, {"square": given.extend})
    assert given == [2] + [1234567.5] * 100
    file.write_text("def square(x):\n    return sum(x)\n")
    assert main(arguments) == 2
    assert "No question that this lab shows" in capsys.readouterr().err


def test_an_answer_of_another_type_is_quoted_without_a_cut_number(
    lab: LoadedLab,
) -> None:
    source = "def square(x):\n    return [x + 1234567] * 99\n"
    (first, *_) = check_plan(lab, source).cases
    assert "list: [1234568, 1234568, 1234568, 1234568, ... 99 in all]." in first.message
    nested = "def square(x):\n    for _ in range(400): x = [x]\n    return x\n"
    (first, *_) = check_plan(lab, nested).cases
    assert "must return int, and returns list: [[[" in first.message


def test_enough_right_answers_are_enough(lab: LoadedLab) -> None:
    source = "def square(x):\n    return x * x + (x == 3)\n"
    result = check_plan(lab, source)
    assert (result.status, result.right, result.of) == ("passed", 3, 4)


FAILURES = {
    "def square(x):\n    y = 1\n    return y / 0\n": (
        "Line 3: ZeroDivisionError: division by zero. Call: square(1)"
    ),
    "def square(x):\n    return 2.5\n": "must return int, and returns float: 2.5",
    "def square(x):\n    pass\n": "must return int, and returns nothing (None)",
    "def square(x):\n    return {(x,): x}\n": "must return int, and returns",
    "def square(x):\n    return [x]\n": "must return int, and returns list: [1]",
    "def square(x):\n    return lambda: 3\n": (
        "no plain data: it is of type function. Call: square(1)"
    ),
    "import numpy\ndef square(x):\n    return numpy.array([x])\n": "of type ndarray",
    "def square(x):\n    return x + 0.5\n": "must return int, and returns float: 1.5",
    "def square(x):\n    return float('inf')\n": "must return int, and returns float",
    "def square(x):\n    return 10**40\n": "no plain data",
    "def square(x, y):\n    return x\n": "missing 1 required positional argument",
    "def squared(x):\n    return x\n": "has no attribute 'square'",
    "def square(x):\n    while True: pass\n": "Line 2: Timed out after 1 s.",
}


@pytest.mark.parametrize("source", FAILURES)
def test_what_goes_wrong_in_a_call_is_told_with_its_line(
    source: str, lab: LoadedLab
) -> None:
    result = check_plan(lab, source)
    assert result.status == "failed"
    assert FAILURES[source] in result.cases[0].message


@pytest.mark.parametrize(
    "answer",
    ["numpy.int64(x * x)", "numpy.float32(x * x) if x < 9 else x * x", "x * x / 1"],
)
def test_a_whole_number_is_one_whoever_computed_it(answer: str, lab: LoadedLab) -> None:
    result = check_plan(lab, f"import numpy\ndef square(x):\n    return {answer}\n")
    assert result.status == "passed", result.message


def test_the_modules_that_are_told_can_be_imported(lab: LoadedLab) -> None:
    message = check_plan(lab, "import torch\n").message
    names = message.partition("; there are ")[2].rstrip(".").split(", ")
    assert {"math", "numpy", "copy"} < set(names)
    source = f"import {', '.join(names)}\n{RIGHT}"
    assert check_plan(lab, source).status == "passed"


def test_what_cant_be_loaded_is_told_with_its_line(lab: LoadedLab) -> None:
    for source, words in {
        "def square(x:\n": "Line 1: SyntaxError",
        "\nimport torch\n": "Line 2: ModuleNotFoundError: No module named 'torch'",
        "a = 1\nb = a[0]\n": "Line 2: TypeError",
    }.items():
        result = check_plan(lab, source)
        assert result.status == "compile error" and words in result.message


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("lab.toml", 'returns = "int"', 'returns = "set"', "functions[0].returns"),
        ("lab.toml", "[[plan.functions]]", "[[functions]]", "functions"),
        ("lab.toml", 'language = "plan"', 'language = "cuda"', "no function inputs()"),
        ("cases.py", "def judge", "def judges", "no function judge()"),
    ],
)
def test_a_bad_lab_is_refused_with_its_file(
    folder: Path, file: str, before: str, after: str, words: str
) -> None:
    text = (folder / file).read_text(encoding="utf-8")
    assert before in text
    (folder / file).write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(BadLab) as refused:
        load(folder)
    assert words in str(refused.value)


def test_a_question_that_is_not_in_the_specification_is_the_labs_fault(
    folder: Path,
) -> None:
    for before, after, words in (
        ('{"x": x}', '{"y": x}', "square(y) is not in lab.toml"),
        ('question.arguments["x"]', 'question.arguments["z"]', "judge: KeyError"),
        ("[1, 2, 3,", "[1, 2, 3 / 0,", "questions: ZeroDivisionError"),
    ):
        text = CASES.replace(before, after)
        (folder / "cases.py").write_text(text, encoding="utf-8")
        with pytest.raises(BadLab, match="cases.py") as refused:
            check_plan(load(folder), RIGHT)
        assert words in str(refused.value)


@pytest.mark.parametrize("name", ["occupancy", "roofline"])
def test_no_answer_makes_a_judge_stumble_and_no_odd_one_is_right(name: str) -> None:
    loaded = find(name)
    odd = {"int": [-1, 10**18], "str": ["", "both", "\0"]}
    floats = [math.nan, math.inf, -math.inf, -1.0, 1e308]
    assert loaded.lab.plan is not None
    returns = {
        function.name: function.returns for function in loaded.lab.plan.functions
    }
    for question in loaded.cases.questions(random.Random(5)):
        for answer in odd.get(returns[question.function], floats):
            assert loaded.cases.judge(question, answer)


@pytest.mark.parametrize("name", ["occupancy", "roofline"])
def test_each_question_tells_a_right_answer_from_one_that_is_a_little_off(
    name: str,
) -> None:
    loaded = find(name)
    answers: dict[str, Any] = {}
    exec(loaded.reference, answers)
    for question in loaded.cases.questions(random.Random(3)):
        right = answers[question.function](**question.arguments)
        assert loaded.cases.judge(question, right) == ""
        off = "memory" if right == "compute" else "compute"
        if not isinstance(right, str):
            off = right * 1.26 + 1e-3
            if question.function in ("resident_blocks", "loads_in_flight"):
                off = right + 1
        assert loaded.cases.judge(question, off)


def test_the_kernels_of_the_occupancy_lab_were_compiled_as_told() -> None:
    """With the same compiler; another's numbers may differ."""
    folder = ROOT / "labs/catalogue/memory/occupancy"
    kept = json.loads((folder / "compiled.json").read_text(encoding="utf-8"))
    now = runpy.run_path(str(ROOT / "tools/occupancy_kernels.py"))["compiled"]()
    assert now["nvrtc"] != kept["nvrtc"] or now == kept
    # what the text says of it
    [spilt] = [
        kernel
        for kernel in kept["kernels"]
        if (kernel["kernel"], kernel["architecture"]) == ("sums_32_held_8", "sm_90")
    ]
    assert (spilt["registers"], spilt["spill_bytes"]) == (32, 292)
    assert occupancy(MULTIPROCESSORS[9, 0], 256, 96, 0).ratio == 0.25
