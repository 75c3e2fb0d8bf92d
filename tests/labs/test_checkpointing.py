"""Bytes and operations of a plan are those of PyTorch, and plans are held to them."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "checkpointing"

Blocks = list[dict[str, float]]
PLANS: list[list[list[int]]] = [
    [],
    [[0, 4]],
    [[0, 2], [2, 4]],
    [[1, 2], [3, 4]],
    [[0, 1], [1, 2], [2, 3], [3, 4]],
]


@pytest.fixture(scope="module")
def made(given: dict[str, Any]) -> tuple[list[Any], Any, Blocks]:
    blocks, x = given["chain"](inner=[64, 256, 128, 512], hidden=64, tokens=512)
    return blocks, x, given["measure"](blocks, x)


def test_what_a_block_saves_and_computes_is_counted_by_pytorch(
    made: tuple[list[Any], Any, Blocks],
) -> None:
    for inner, block in zip((64, 256, 128, 512), made[2], strict=True):
        # FP32: the input, and the input and output of GELU
        assert block["input_mib"] == 512 * 64 * 4 / 2**20
        assert block["saved_mib"] == 512 * (64 + 2 * inner) * 4 / 2**20
        # two equal products, and early stop leaves the second one out
        assert block["gflop"] == pytest.approx(2 * 2 * 512 * 64 * inner / 1e9)
        assert block["tail_gflop"] == pytest.approx(block["gflop"] / 2)


@pytest.mark.parametrize("segments", PLANS, ids=str)
def test_a_step_holds_and_recomputes_what_the_model_says(
    given: dict[str, Any],
    made: tuple[list[Any], Any, Blocks],
    written: ModuleType,
    segments: list[list[int]],
) -> None:
    blocks, x, described = made
    step = given["run"](blocks, x, segments)
    output_mib = described[0]["input_mib"]
    expected_mib = written.peak_mib(described, segments)
    assert step["activations_mib"] == expected_mib + output_mib
    gflop = written.recomputed_gflop(described, segments)
    assert step["extra_gflop"] == pytest.approx(gflop, abs=1e-9)


def test_a_block_costs_a_sixth_of_a_step_as_the_text_says(
    given: dict[str, Any], made: tuple[list[Any], Any, Blocks]
) -> None:
    blocks, x, described = made
    extra_gflop = given["run"](blocks[:1], x, [[0, 1]])["extra_gflop"]
    # a backward pass has twice the products of a forward pass
    assert extra_gflop == pytest.approx(3 * described[0]["gflop"] / 6)


def test_gradients_do_not_hang_on_the_plan(
    given: dict[str, Any], made: tuple[list[Any], Any, Blocks]
) -> None:
    torch = pytest.importorskip("torch")
    blocks, x, _ = made
    expected = given["gradients"](blocks, x, [])
    for segments in PLANS[1:]:
        for one, other in zip(
            expected, given["gradients"](blocks, x, segments), strict=True
        ):
            assert torch.equal(one, other)


def every_plan(count: int, first: int = 0) -> list[list[list[int]]]:
    if first == count:
        return [[]]
    plans = list(every_plan(count, first + 1))
    for end in range(first + 1, count + 1):
        plans += [[[first, end], *rest] for rest in every_plan(count, end)]
    return plans


def test_the_best_plan_is_the_best_of_all_plans(
    lab: LoadedLab, written: ModuleType
) -> None:
    rng = random.Random(5)
    plans = every_plan(6)
    for _ in range(12):
        blocks = [
            {
                "input_mib": rng.randint(1, 8),
                "saved_mib": rng.randint(9, 30),
                "gflop": rng.randint(10, 30),
                "tail_gflop": rng.randint(1, 9),
            }
            for _ in range(6)
        ]
        prices = [
            (
                written.peak_mib(blocks, segments),
                written.recomputed_gflop(blocks, segments),
            )
            for segments in plans
        ]
        least_mib = min(peak for peak, _ in prices)
        for cap_mib in (least_mib - 3, least_mib, least_mib + 5, least_mib + 20):
            within = [price for price in prices if price[0] <= cap_mib]
            best = min((gflop for _, gflop in within), default=None)
            given = {"blocks": blocks, "cap_mib": cap_mib}
            for segments, (peak, gflop) in zip(plans, prices, strict=True):
                is_best = peak == least_mib if best is None else False
                is_best = is_best or (peak <= cap_mib and gflop == best)
                words = lab.cases.judge(Question("plan", given), segments)
                assert (words == "") == is_best, words


@pytest.mark.parametrize(
    ("segments", "words"),
    [
        ([[0]], "A row has 1 numbers"),
        ([[1, 1]], "[1, 1] is no segment of 2 blocks"),
        ([[-1, 1]], "is no segment"),
        ([[0, 3]], "end at most 2"),
        ([[1, 2], [0, 1]], "[0, 1] begins before the segment before it ends"),
        ([[0, 2], [1, 2]], "begins before"),
        ([[0, 1]] * 100_000, "begins before"),
    ],
)
def test_what_is_no_plan_is_refused_in_words(
    lab: LoadedLab, segments: list[list[int]], words: str
) -> None:
    block = {"input_mib": 1, "saved_mib": 3, "gflop": 4, "tail_gflop": 1}
    question = Question("plan", {"blocks": [block, block], "cap_mib": 6})
    assert words in lab.cases.judge(question, segments)
    assert lab.cases.judge(question, []) == ""
