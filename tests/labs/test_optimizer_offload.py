"""Adam on the CPU: times by hand, rules of a plan, and what the draws find out."""

from __future__ import annotations

import random
import re
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "optimizer-offload"

#: of the text's picture
MACHINE: dict[str, Any] = {
    "down_bytes_per_s": 25e9,
    "up_bytes_per_s": 25e9,
    "copy_s": 0.0,
    "cpu_adam_per_s": 5e9,
    "cpu_cast_per_s": 50e9,
    "gpu_cast_per_s": 100e9,
    "gpu_adam_per_s": 100e9,
    "call_s": 0.0,
    "spare_bytes": 0,
    "clips": False,
}
LAYERS = [{"params": 100_000_000, "backward_s": 0.025}] * 4


@pytest.mark.parametrize(
    ("changed", "plan", "step_ms"),
    [
        # backward 100; down 32, two casts of 8 around an Adam of 80, up 32
        ({}, [[4, 0, 0]], 260),
        # behind the last 25 of backward: 8, 2 + 20 + 2, 8
        ({}, [[1, 0, 0]] * 4, 140),
        # each bucket costs the CPU 5 more, which is then the slowest:
        # 25, down 8, 4 of 29, up 8
        ({"call_s": 0.005}, [[1, 0, 0]] * 4, 157),
        # the first cast is done before the norm is known; then 22 and three of 24, up 8
        ({"clips": True}, [[1, 0, 0]] * 4, 202),
        # four bytes and a cast of 1 on either side: 101, down 16, Adam 20, up 16, 1,
        # where only the last bucket travels that way
        ({}, [[1, 0, 0]] * 3 + [[1, 1, 0]], 154),
        # the last one stays: 100 and an Adam of 1, or the third bucket's 75 + 40
        ({"spare_bytes": 1_200_000_000}, [[1, 0, 0]] * 3 + [[1, 0, 1]], 115),
        # all stay
        ({"spare_bytes": 4_800_000_000}, [[4, 0, 1]], 104),
    ],
)
def test_a_step_takes_what_it_does_by_hand(
    lab: LoadedLab,
    written: ModuleType,
    changed: dict[str, Any],
    plan: list[list[int]],
    step_ms: float,
) -> None:
    machine = {**MACHINE, **changed}
    assert 1e3 * written.step_s(machine, LAYERS, plan) == pytest.approx(step_ms)
    given = {"machine": machine, "layers": LAYERS, "plan": plan}
    judged = lab.cases.judge(Question("step_s", given, "by hand"), 1e-3 * step_ms)
    assert judged == ""


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ([], "The buckets have 0 layers; the model has 4."),
        ([[3, 0, 0]], "The buckets have 3 layers; the model has 4."),
        ([[4, 0]], "A row has 2 numbers; it must have layers, cast_on_gpu"),
        ([[0, 0, 0], [4, 0, 0]], "`layers` is 1 or more, the others are 0 or 1."),
        ([[4, 2, 0]], "`layers` is 1 or more, the others are 0 or 1."),
        ([[3, 0, 0], [1, 0, 1]], "needs 1200000000 bytes; 0 are spare."),
        ([[4, 0, 0]], "It takes 260 ms, 160 ms of them behind backward; 142.8 ms are"),
    ],
)
def test_a_plan_that_breaks_a_rule_or_is_slow_is_refused_with_the_rule(
    lab: LoadedLab, plan: list[list[int]], words: str
) -> None:
    given = {"machine": MACHINE, "layers": LAYERS}
    assert words in lab.cases.judge(Question("plan", given, "by hand"), plan)


@pytest.mark.parametrize("seed", range(3))
def test_on_each_machine_another_plan_is_needed(
    lab: LoadedLab, written: ModuleType, seed: int
) -> None:
    drawn = lab.cases.questions(random.Random(seed))
    plans = [question for question in drawn if question.function == "plan"]
    by_kind = {question.about: question for question in plans}
    assert len(by_kind) == 9

    def is_enough(about: str, plan: list[list[int]]) -> bool:
        return not lab.cases.judge(by_kind[about], plan)

    for about, question in by_kind.items():
        best = written.plan(**question.arguments)
        assert is_enough(about, best), about
        assert not is_enough(about, [[len(question.arguments["layers"]), 0, 0]]) or (
            about == "small layers"
        )
    clipped = by_kind["gradients are clipped by their norm"].arguments
    misled = written.plan({**clipped["machine"], "clips": False}, clipped["layers"])
    assert not is_enough("gradients are clipped by their norm", misled)


def test_the_text_has_the_figures_of_its_picture(
    lab: LoadedLab, written: ModuleType
) -> None:
    picture = (lab.folder / "buckets.svg").read_text(encoding="utf-8")
    for plan, title in (([[4, 0, 0]], "one bucket"), ([[1, 0, 0]] * 4, "four buckets")):
        step_ms = 1e3 * written.step_s(MACHINE, LAYERS, plan)
        assert f"{title}: {step_ms:.0f} ms" in picture
        assert f"{step_ms:.0f} ms" in lab.text
    tokens = re.search(r"10\^\{12\}\$ and \$r = 5 .*?, ([\d,]+) tokens", lab.text)
    assert tokens and int(tokens[1].replace(",", "")) == 400e12 / (4 * 5e9)
