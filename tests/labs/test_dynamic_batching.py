"""The simulated endpoint: its rules, its clock, and what a batcher can know."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "dynamic-batching"

FULL = "more models than fit"
SCENES = (
    "many requests",
    "few requests",
    "bursts",
    "a model that is seldom asked",
    FULL,
)


def begun(lab: LoadedLab, scene: str, seed: int = 3) -> tuple[Any, Any, Any]:
    question = Question("batch", {"scene": scene, "seed": seed}, scene)
    endpoint, arguments, words = lab.cases.advance(question, None, None)
    assert words == ""
    return question, endpoint, arguments


def played(lab: LoadedLab, source: str, scene: str, seed: int) -> str:
    """Play a whole run; give its verdict."""
    module = ModuleType("answers")
    exec(source, module.__dict__)
    question, endpoint, arguments = begun(lab, scene, seed)
    words = ""
    while arguments is not None:
        decision = module.batch(arguments["server"], arguments["state"])
        endpoint, arguments, words = lab.cases.advance(question, endpoint, decision)
    return words


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        ({"m7": 1}, "is no model of this endpoint"),
        ({"m0": 0}, "a batch of 0 for m0; 40 wait"),
        ({"m0": 33}, "`most_batch` is 32"),
        ({"m0": 1, "wait_ms": 1}, "one at a time"),
        ({}, "it decides 0 things"),
        ({"wait_ms": 0}, "it waits 0 ms"),
        ({"wait_ms": 10_001}, "1 to 10,000 are allowed"),
    ],
)
def test_an_impossible_decision_is_refused_with_its_rule(
    lab: LoadedLab, decision: dict[str, int], rule: str
) -> None:
    question, endpoint, _ = begun(lab, "bursts")
    _, arguments, words = lab.cases.advance(question, endpoint, decision)
    assert arguments is None and rule in words
    assert ", in decision 0: " in words


def test_a_batch_takes_the_time_that_is_told_and_the_oldest_requests(
    lab: LoadedLab,
) -> None:
    question, endpoint, arguments = begun(lab, "bursts")
    before, model = arguments["state"], arguments["server"]["models"]["m0"]
    assert len(before["waiting"]["m0"]) == 40
    _, arguments, _ = lab.cases.advance(question, endpoint, {"m0": 30})
    state = arguments["state"]
    took_s = model["fixed_s"] + 30 * model["item_s"]
    assert state["now_s"] == pytest.approx(before["now_s"] + took_s)
    assert state["waiting"]["m0"][:10] == before["waiting"]["m0"][30:]


def test_a_model_that_is_not_there_is_loaded_for_the_one_used_longest_ago(
    lab: LoadedLab,
) -> None:
    question, endpoint, arguments = begun(lab, FULL)
    while not (waiting := arguments["state"]["waiting"]["m3"]):
        _, arguments, _ = lab.cases.advance(question, endpoint, {"wait_ms": 50})
    before = arguments["state"]
    assert before["loaded"] == ["m0", "m1"] and len(waiting) == 1
    model = arguments["server"]["models"]["m3"]
    _, arguments, _ = lab.cases.advance(question, endpoint, {"m3": 1})
    assert arguments["state"]["loaded"] == ["m1", "m3"]
    took_s = model["load_s"] + model["fixed_s"] + model["item_s"]
    assert arguments["state"]["now_s"] == pytest.approx(before["now_s"] + took_s)
    # it is there now
    _, arguments, _ = lab.cases.advance(question, endpoint, {"m1": 1})
    assert arguments["state"]["loaded"] == ["m3", "m1"]


def test_a_wait_ends_when_a_request_comes_and_tells_of_no_other(
    lab: LoadedLab,
) -> None:
    question, endpoint, arguments = begun(lab, "few requests")
    for _ in range(20):
        state = arguments["state"]
        assert all(at <= state["now_s"] for at in state["waiting"]["m0"])
        before = len(state["waiting"]["m0"])
        _, arguments, _ = lab.cases.advance(question, endpoint, {"wait_ms": 10_000})
        assert len(arguments["state"]["waiting"]["m0"]) == before + 1
        assert arguments["state"]["now_s"] == arguments["state"]["waiting"]["m0"][-1]


def test_right_batchers_keep_the_promise_in_every_draw_and_wrong_ones_in_none(
    lab: LoadedLab,
) -> None:
    dialogues = {
        "always_the_oldest_request": FULL,
        "loaded_models_first": FULL,
        "the_longest_line_first": FULL,
        "models_in_the_order_of_their_names": FULL,
        "one_at_a_time": "many requests",
        "waits_for_full_batches": "few requests",
        "waits_until_it_is_late": "few requests",
    }
    for seed in range(8):
        for scene in SCENES:
            assert played(lab, lab.reference, scene, seed) == "", (scene, seed)
        for name, scene in dialogues.items():
            words = played(lab, lab.wrong[f"{name}.py"], scene, seed)
            assert "is allowed" in words or "still here" in words, (name, seed)


def test_the_least_batch_keeps_up_and_one_less_does_not(lab: LoadedLab) -> None:
    questions = lab.cases.questions(random.Random(5))
    for question in [one for one in questions if one.function == "least_batch"]:
        model, rate = (question.arguments[name] for name in ("model", "per_second"))
        keeps_up = [
            count / (model["fixed_s"] + count * model["item_s"]) >= rate
            for count in range(1, 2000)
        ]
        right = keeps_up.index(True) + 1 if any(keeps_up) else 0
        assert lab.cases.judge(question, right) == ""
        assert lab.cases.judge(question, right + 1) != ""
