"""The simulated server: its rules, its clock, and what a scheduler can know."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "continuous-batching"

KNOWN = {
    "name",
    "arrived_s",
    "prompt_tokens",
    "limit_tokens",
    "generated_tokens",
    "cached_tokens",
}


def scheduler(source: str) -> Any:
    module = ModuleType("answers")
    exec(source, module.__dict__)
    return module.schedule


def begun(lab: LoadedLab, scene: str, seed: int = 3) -> tuple[Question, Any, Any]:
    question = Question("schedule", {"scene": scene, "seed": seed}, scene)
    server, arguments, words = lab.cases.advance(question, None, None)
    assert words == ""
    return question, server, arguments


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        ({"r7000": 1}, "has not arrived, is finished, or is none at all"),
        ({"r1": 1}, "has not arrived"),
        ({"r0": 10**6}, "that are not in the cache"),
        ({"r0": 0}, "that are not in the cache"),
        ({"r0": -2}, "that are not in the cache"),
    ],
)
def test_an_impossible_decision_is_refused_with_its_rule(
    lab: LoadedLab, decision: dict[str, int], rule: str
) -> None:
    question, server, _ = begun(lab, "short prompts")
    _, arguments, words = lab.cases.advance(question, server, decision)
    assert arguments is None and rule in words
    assert words.startswith("At 0.000 s, in iteration 0: ")


@pytest.mark.parametrize(
    ("scene", "share", "rule"),
    [
        ("a small cache", 1.0, "blocks of the cache; there are 260"),
        ("few requests at once", 1.0, "`most_requests` is 8"),
        ("a burst", 1.0, "`most_tokens` is 4,096"),
    ],
)
def test_more_than_the_engine_has_is_refused(
    lab: LoadedLab, scene: str, share: float, rule: str
) -> None:
    """Whoever computes all that is missing meets each bound in one of the scenes."""
    question, server, arguments = begun(lab, scene)
    words = ""
    while arguments is not None:
        decision = {
            request["name"]: request["prompt_tokens"]
            + request["generated_tokens"]
            - request["cached_tokens"]
            for request in arguments["state"]["requests"]
        }
        server, arguments, words = lab.cases.advance(question, server, decision)
    assert rule in words


def test_one_that_stands_still_is_refused(lab: LoadedLab) -> None:
    question, server, arguments = begun(lab, "a burst")
    steps = 0
    while arguments is not None:
        server, arguments, words = lab.cases.advance(question, server, {})
        steps += 1
    assert "would wait for ever" in words
    # time went on to each arrival before
    assert steps == 64


def test_a_request_alone_takes_the_time_that_is_told(lab: LoadedLab) -> None:
    question, server, arguments = begun(lab, "short prompts")
    engine, [request] = arguments["engine"], arguments["state"]["requests"]
    prompt = request["prompt_tokens"]
    _, arguments, _ = lab.cases.advance(question, server, {"r0": prompt})
    expected = max(engine["weights_s"], prompt * engine["token_s"])
    expected += prompt * engine["cached_token_s"]
    state = arguments["state"]
    assert state["now_s"] == pytest.approx(expected)
    [request] = [request for request in state["requests"] if request["name"] == "r0"]
    assert request["generated_tokens"] == 1 and request["cached_tokens"] == prompt
    blocks = -(-prompt // 16)
    assert state["free_blocks"] == engine["blocks"] - blocks
    # evicted, it has nothing in the cache, and keeps what it generated
    _, arguments, _ = lab.cases.advance(question, server, {"r0": -1})
    assert arguments["state"]["free_blocks"] == engine["blocks"]
    [request] = [
        request for request in arguments["state"]["requests"] if request["name"] == "r0"
    ]
    assert request["generated_tokens"] == 1 and request["cached_tokens"] == 0


def test_a_scheduler_is_told_no_output_and_nobody_who_comes(lab: LoadedLab) -> None:
    schedule = scheduler(lab.reference)
    question, server, arguments = begun(lab, "a small cache")
    evicted = 0
    while arguments is not None:
        state = arguments["state"]
        assert set(state) == {"now_s", "free_blocks", "requests"}
        for request in state["requests"]:
            assert set(request) == KNOWN
            assert request["arrived_s"] <= state["now_s"]
            # the limit is the same for all, and tells no output
            assert request["limit_tokens"] == 800 > request["generated_tokens"]
        held = sum(-(-request["cached_tokens"] // 16) for request in state["requests"])
        assert state["free_blocks"] + held == 260
        decision = schedule(arguments["engine"], state)
        evicted += -1 in decision.values()
        server, arguments, words = lab.cases.advance(question, server, decision)
    # the cache did run full, and all requests were finished
    assert words == "" and evicted > 0


def test_the_same_seed_is_the_same_run(lab: LoadedLab) -> None:
    runs = [begun(lab, "a burst", seed)[1].bounds for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    drawn = [
        [question.arguments for question in lab.cases.questions(random.Random(seed))]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_the_text_tells_how_many_scenarios_there_are(lab: LoadedLab) -> None:
    questions = lab.cases.questions(random.Random(0))
    scenes = {one.about for one in questions if one.function == "schedule"}
    assert len(scenes) == 11 and "in eleven scenarios" in lab.text
