"""Schedules of an all-reduce: what the judge lets pass sums up real buffers."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import groupby
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.lab_checks import check_plan
from tests.labs.answers import module_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "collectives"

RANKS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 17)
PORT = 1e9, 1e-6
UPLINK = 1e8, 1e-5


def cluster_of(groups: list[int]) -> dict[str, Any]:
    return {
        "groups": groups,
        "port_bytes_per_s": PORT[0],
        "port_latency_s": PORT[1],
        "uplink_bytes_per_s": UPLINK[0],
        "uplink_latency_s": UPLINK[1],
    }


def summed(buffers: list[np.ndarray], schedule: list[list[int]]) -> list[np.ndarray]:
    """Run a schedule on real buffers, cut into chunks that may differ by an element."""
    chunks = 1 + max((row[3] for row in schedule), default=0)
    parts = [np.array_split(buffer.copy(), chunks) for buffer in buffers]
    for _, rows in groupby(sorted(schedule), key=lambda row: row[0]):
        sent = [(row, parts[row[1]][row[3]].copy()) for row in rows]
        for (_, _, receiver, chunk, adds), values in sent:
            part = parts[receiver][chunk]
            part[...] = part + values if adds else values
    return [np.concatenate(part) for part in parts]


@pytest.mark.parametrize("function", ["ring", "tree", "halving_doubling"])
@pytest.mark.parametrize("length", [1, 7, 64, 1009])
def test_what_the_judge_accepts_sums_up_buffers_of_any_length(
    lab: LoadedLab, function: str, length: int
) -> None:
    numbers = np.random.default_rng(3)
    for source in (lab.reference, *lab.correct.values()):
        written = module_of(source)
        for ranks in RANKS:
            schedule = getattr(written, function)(ranks)
            assert not lab.cases.judge(Question(function, {"ranks": ranks}), schedule)
            buffers = [numbers.integers(-(2**40), 2**40, length) for _ in range(ranks)]
            for result in summed(buffers, schedule):
                np.testing.assert_array_equal(result, np.sum(buffers, axis=0))


def test_schedules_for_clusters_sum_up_real_buffers_too(lab: LoadedLab) -> None:
    numbers = np.random.default_rng(4)
    questions = [
        question for question in lab.cases.questions(random.Random(2)) if question.about
    ]
    clusters = [question for question in questions if question.function == "all_reduce"]
    assert len(clusters) == 7
    for source in (lab.reference, *lab.correct.values()):
        for question in clusters:
            schedule = module_of(source).all_reduce(*question.arguments.values())
            assert not lab.cases.judge(question, schedule)
            ranks = len(question.arguments["cluster"]["groups"])
            buffers = [numbers.integers(-(2**40), 2**40, 97) for _ in range(ranks)]
            for result in summed(buffers, schedule):
                np.testing.assert_array_equal(result, np.sum(buffers, axis=0))


@pytest.mark.parametrize("ranks", [2, 5, 8, 13, 16])
def test_times_in_one_group_are_those_of_the_formulas(
    written: ModuleType, lab: LoadedLab, ranks: int
) -> None:
    size_bytes = 6_000_000
    cluster, whole_s = cluster_of([0] * ranks), size_bytes / PORT[0]
    bound_s = 2 * (ranks - 1) / ranks * whole_s
    depth = math.ceil(math.log2(ranks))
    expected_s = {
        "ring": 2 * (ranks - 1) * PORT[1] + bound_s,
        "tree": 2 * depth * (PORT[1] + whole_s),
    }
    if ranks & (ranks - 1) == 0:
        expected_s["halving_doubling"] = 2 * depth * PORT[1] + bound_s
    for function, right_s in expected_s.items():
        schedule = getattr(written, function)(ranks)
        given = {"cluster": cluster, "size_bytes": size_bytes, "schedule": schedule}
        question = Question("seconds", given)
        assert not lab.cases.judge(question, right_s)
        assert "expected" in lab.cases.judge(question, right_s * 1.001)


def test_two_levels_send_a_buffer_over_each_uplink_and_a_ring_nearly_two(
    written: ModuleType,
) -> None:
    groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
    for schedule, buffers in (
        (written.two_levels_among(groups), 1),
        (written.ring_among([*groups[0], *groups[1]]), 2 * 7 / 8),
    ):
        chunks = 1 + max(row[3] for row in schedule)
        crossing = Counter(row[1] % 2 for row in schedule if (row[1] - row[2]) % 2)
        assert crossing == {0: buffers * chunks, 1: buffers * chunks}


#: a schedule for so many ranks, and the judge's words on it
BROKEN = {
    "not there yet": (2, [[0, 0, 1, 0, 0]], "does not have it yet: it lacks rank 1"),
    "passed on in its own step": (
        3,
        [[0, 0, 1, 0, 1], [0, 1, 2, 0, 1], [1, 2, 0, 0, 0]],
        "Step 1: rank 2 sends chunk 0 as a finished sum to rank 0",
    ),
    "twice": (2, [[0, 0, 1, 0, 1], [1, 0, 1, 0, 1]], "it would count twice"),
    "a port sends two": (
        3,
        [[4, 0, 1, 0, 1], [4, 0, 2, 0, 1]],
        "Step 4: rank 0 sends to ranks 1, 2. A port has one message each way",
    ),
    "a port receives two": (
        3,
        [[0, 1, 0, 0, 1], [0, 2, 0, 0, 1]],
        "rank 0 receives from ranks 1, 2",
    ),
    "a chunk twice": (2, [[0, 0, 1, 0, 1]] * 2, "the same chunk twice"),
    "never finished": (2, [[0, 0, 1, 0, 1]], "At the end rank 0 does not have the sum"),
    "nothing": (3, [], "At the end rank 0 does not have the sum of chunk 0"),
    "one chunk of two": (
        2,
        [[0, 0, 1, 1, 1], [1, 1, 0, 1, 0]],
        "does not have the sum of chunk 0",
    ),
    "another rank": (2, [[0, 0, 2, 0, 1]], "there is no rank 2 among 2"),
    "a rank below": (2, [[0, -1, 0, 0, 1]], "there is no rank -1"),
    "itself": (2, [[0, 1, 1, 0, 1]], "a rank sends nothing to itself"),
    "a short row": (2, [[0, 1, 0, 0]], "A row has 4 numbers; it must have step"),
    "another way": (2, [[0, 1, 0, 0, 2]], "`adds` is 0 or 1"),
    "an earlier step": (2, [[-1, 1, 0, 0, 1]], "steps begin at 0"),
    "a chunk too far": (2, [[0, 1, 0, 10**15, 1]], "chunks are numbered 0 to 1023"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(lab: LoadedLab, name: str) -> None:
    ranks, schedule, words = BROKEN[name]
    cluster = {"cluster": cluster_of([0] * ranks), "size_bytes": 1000}
    for question in (
        Question("tree", {"ranks": ranks}),
        Question("all_reduce", cluster),
    ):
        assert words in lab.cases.judge(question, schedule)


def test_right_sums_that_take_too_much_are_told_with_what_is_enough(
    lab: LoadedLab, written: ModuleType
) -> None:
    ring, tree = written.ring(8), written.tree(8)
    for function, schedule, words in (
        ("tree", ring, "It takes 14 steps; 6 are enough."),
        ("ring", tree, "Rank 0 receives 3 times the buffer in 3 messages; 1.75 times"),
        ("ring", written.halving_doubling(8), "sends to one neighbour only"),
        ("halving_doubling", ring, "It takes 14 steps; 6 are enough."),
    ):
        words_told = lab.cases.judge(Question(function, {"ranks": 8}), schedule)
        assert words in words_told


def test_a_schedule_of_another_shape_is_refused_where_it_comes_in(
    lab: LoadedLab,
) -> None:
    for returned, words in (
        ("[[0, 1, 0, 0, 0.5]]", "It must return list[list[int]], and returns list"),
        ("[[[[[0]]]]]", "It must return list[list[int]], and returns list"),
        ("[[0, 1, 0, 0, 1]] * 100_000", "It returned more than 64 KiB."),
    ):
        source = f"{lab.reference}\n\ndef ring(ranks):\n    return {returned}\n"
        result = check_plan(lab, source)
        assert result.status == "failed"
        messages = [case.message for case in result.cases if not case.passed]
        assert messages and all(words in message for message in messages)


@pytest.mark.parametrize("row", ["(*row[:4], row[4] == 1)", "[n / 1 for n in row]"])
def test_rows_of_tuples_truths_and_whole_floats_are_rows(
    lab: LoadedLab, row: str
) -> None:
    words = f"def ring(ranks):\n    return [{row} for row in ring_of(ranks)]\n"
    source = lab.reference.replace("def ring(ranks)", "def ring_of(ranks)")
    result = check_plan(lab, f"{source}\n\n{words}")
    assert result.status == "passed", result.message
