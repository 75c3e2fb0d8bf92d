"""The simulated cluster: its rules, its lease, and what a search can know."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "tune-on-a-budget"

KNOWN = {"name", "learning_rate", "step_s", "steps", "is_running", "reports"}
SCENE = "curves that cross"


def begun(lab: LoadedLab, scene: str = SCENE, seed: int = 3) -> tuple[Any, Any, Any]:
    question = Question("search", {"scene": scene, "seed": seed}, scene)
    cluster, arguments, words = lab.cases.advance(question, None, None)
    assert words == ""
    return question, cluster, arguments


def played(lab: LoadedLab, source: str, scene: str, seed: int) -> tuple[str, Any]:
    """Play a whole search; give its verdict and the cluster."""
    module = ModuleType("answers")
    exec(source, module.__dict__)
    question, cluster, arguments = begun(lab, scene, seed)
    words = ""
    while arguments is not None:
        decision = module.search(arguments["cluster"], arguments["state"])
        cluster, arguments, words = lab.cases.advance(question, cluster, decision)
    return words or lab.cases.judge(question, cluster), cluster


def passes(lab: LoadedLab, source: str, scene: str, seed: int) -> bool:
    """Play a search; one that ends by an error of its own does not pass."""
    try:
        return played(lab, source, scene, seed)[0] == ""
    except ValueError:
        return False


def scenes(lab: LoadedLab) -> list[str]:
    """Give the scene of each search that is drawn."""
    questions = lab.cases.questions(random.Random(0))
    return [one.about for one in questions if one.function == "search"]


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        ({"t162": 5}, "is no trial of the pool"),
        ({"t0": 406}, "1 to 405 are left"),
        ({"t0": -1}, "1 to 405 are left"),
        ({"t0": 0}, "was never trained"),
        ({"t0": 0, "t1": 5}, "has no other one beside it"),
        ({f"t{place}": 5 for place in range(5)}, "`free_gpus` is 4"),
        ({}, "would idle for ever"),
    ],
)
def test_an_impossible_decision_is_refused_with_its_rule(
    lab: LoadedLab, decision: dict[str, int], rule: str
) -> None:
    question, cluster, _ = begun(lab)
    _, arguments, words = lab.cases.advance(question, cluster, decision)
    assert arguments is None and rule in words
    assert words.startswith("At 0 s, in decision 0: ")


def test_a_running_trial_is_neither_begun_nor_kept(lab: LoadedLab) -> None:
    for steps in (5, 0):
        question, cluster, _ = begun(lab)
        cluster, _, words = lab.cases.advance(question, cluster, {"t0": 5})
        assert words == ""
        _, arguments, words = lab.cases.advance(question, cluster, {"t0": steps})
        assert arguments is None and "t0 is running" in words


def test_a_run_that_ends_after_the_lease_is_refused(lab: LoadedLab) -> None:
    question, cluster, arguments = begun(lab, "one GPU")
    assert arguments["cluster"]["ends_s"] == pytest.approx(10 * 405)
    words = ""
    for place in range(11):
        assert words == ""
        cluster, arguments, words = lab.cases.advance(
            question, cluster, {f"t{place}": 405}
        )
    assert arguments is None
    assert "405 steps of t10 end 405.0 s after the lease" in words


def test_a_search_is_told_what_was_trained_and_nothing_else(lab: LoadedLab) -> None:
    question, cluster, arguments = begun(lab)
    assert [set(trial) for trial in arguments["state"]["trials"]] == [KNOWN] * 162
    assert not any(trial["reports"] for trial in arguments["state"]["trials"])
    step_s = arguments["state"]["trials"][7]["step_s"]
    cluster, arguments, _ = lab.cases.advance(question, cluster, {"t7": 15})
    # a GPU is free still, so no time goes by
    assert arguments["state"]["now_s"] == 0.0 and arguments["state"]["free_gpus"] == 3
    assert arguments["state"]["trials"][7]["reports"] == []
    _, arguments, _ = lab.cases.advance(question, cluster, {})
    assert arguments["state"]["now_s"] == pytest.approx(15 * step_s)
    trial = arguments["state"]["trials"][7]
    assert trial["steps"] == 15 and not trial["is_running"]
    assert [steps for steps, _ in trial["reports"]] == [15]


def test_a_report_is_the_same_whatever_ran_before(lab: LoadedLab) -> None:
    reports = []
    for first in ("t1", "t2"):
        question, cluster, _ = begun(lab, "one GPU")
        for decision in ({first: 5}, {"t0": 5}):
            cluster, arguments, _ = lab.cases.advance(question, cluster, decision)
        reports.append(arguments["state"]["trials"][0]["reports"])
    assert reports[0] == reports[1]


def test_the_same_seed_is_the_same_pool(lab: LoadedLab) -> None:
    pools = [begun(lab, seed=seed)[2]["state"] for seed in (1, 1, 2)]
    assert pools[0] == pools[1] != pools[2]
    drawn = [
        [question.arguments for question in lab.cases.questions(random.Random(seed))]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


#: all trials are compared once, and the eight best of them are trained to the end
ONE_RUNG = """
def search(cluster, state):
    trials, least = state["trials"], cluster["least_steps"]
    begun = [trial for trial in trials if trial["steps"] or trial["is_running"]]
    if len(begun) < len(trials):
        return {trials[len(begun)]["name"]: least}
    if any(not trial["steps"] for trial in trials):
        return {}
    best = sorted(trials, key=lambda trial: trial["reports"][0][1])[:8]
    for trial in best:
        left = cluster["most_steps"] - trial["steps"]
        in_time = state["now_s"] + left * trial["step_s"] <= cluster["ends_s"]
        if left and in_time and not trial["is_running"]:
            return {trial["name"]: left}
    if any(trial["is_running"] for trial in trials):
        return {}
    return {min(trials, key=lambda trial: trial["reports"][-1][1])["name"]: 0}
"""


def test_our_search_does_in_nearly_all_draws_and_others_in_too_few(
    lab: LoadedLab,
) -> None:
    """The 24 of 28 that are asked for are more than one rung or none comes to."""
    random_search = lab.wrong["no_early_stopping.py"]
    draws = [(scene, seed) for scene in set(scenes(lab)) for seed in range(4)]
    passed = [
        sum(passes(lab, source, *draw) for draw in draws)
        for source in (lab.reference, random_search, ONE_RUNG)
    ]
    assert passed[0] == len(draws) and passed[1] < 0.6 * len(draws)
    assert passed[2] < 0.85 * len(draws)


def test_the_text_tells_how_many_searches_there_are(lab: LoadedLab) -> None:
    searches = scenes(lab)
    assert (len(set(searches)), len(searches)) == (7, 14)
    assert "seven scenarios" in lab.text and "24 of the\n28 must pass" in lab.text
