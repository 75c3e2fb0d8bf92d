"""Orders of a pipeline's passes: what they take, what they hold, what is refused."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest

from tests.labs.answers import module_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "pipeline-schedules"


def bubble(
    written: ModuleType,
    schedule: list[list[int]],
    sizes: tuple[int, int, int],
    backward: int,
) -> float:
    _, chunks, micro_batches = sizes
    taken = written.total_time(*sizes, backward, schedule)
    return 1 - chunks * micro_batches * (1 + backward) / float(taken)


@pytest.mark.parametrize("backward", [1, 2, 3])
def test_bubbles_of_the_papers_come_out_of_the_orders(
    written: ModuleType, backward: int
) -> None:
    for name, chunks, expected, shown in (
        ("gpipe", 1, 7 / 39, 0.1795),
        ("one_f_one_b", 1, 7 / 39, 0.1795),
        ("interleaved", 2, 7 / 71, 0.0986),
    ):
        sizes = (8, chunks, 32)
        arguments = sizes if name == "interleaved" else (8, 32)
        schedule = getattr(written, name)(*arguments)
        share = bubble(written, schedule, sizes, backward)
        assert share == pytest.approx(expected, abs=1e-12)
        assert round(share, 4) == shown


def test_the_figures_of_the_texts_are_those_that_come_out(
    lab: LoadedLab, written: ModuleType
) -> None:
    picture = (lab.folder / "schedules.svg").read_text(encoding="utf-8")
    shown = re.findall(r"bubble (0\.\d{4}), stage 0 holds up to ([\d.]+)", picture)
    schedules = [
        (written.gpipe(4, 8), 1),
        (written.one_f_one_b(4, 8), 1),
        (written.interleaved(4, 2, 8), 2),
    ]
    assert shown == [
        (f"{bubble(written, rows, (4, chunks, 8), 2):.4f}", f"{held(rows) / chunks:g}")
        for rows, chunks in schedules
    ]
    # of the discussion: a cap of 4 among 8 stages with 24 micro-batches
    times = [
        module_of(source).capped(8, 24, 2, 4)
        for source in (
            lab.wrong["in_turns_under_the_cap.py"],
            lab.wrong["groups_with_a_flush.py"],
            lab.reference,
        )
    ]
    sizes = (8, 1, 24)
    assert [written.total_time(*sizes, 2, rows) for rows in times] == [333, 198, 153]


def held(schedule: list[list[int]]) -> int:
    """Count the most chunks that the first stage holds."""
    now = most = 0
    for stage, _, _, backward in schedule:
        if stage == 0:
            now += -1 if backward else 1
            most = max(most, now)
    return most


@pytest.mark.parametrize("most_held", [1, 2, 3, 4, 7])
def test_less_memory_costs_time_as_the_bound_says(
    written: ModuleType, most_held: int
) -> None:
    stages, micro_batches, backward = 8, 24, 2
    rows = written.capped(stages, micro_batches, backward, most_held)
    assert held(rows) == most_held
    taken = written.total_time(stages, 1, micro_batches, backward, rows)
    bound = micro_batches * stages * (1 + backward) / most_held
    assert bound <= taken <= 1.25 * bound


F, B = 0, 1
#: an order for two stages and one micro-batch, and the judge's words on it
BROKEN: dict[str, tuple[list[Any], str]] = {
    "nothing": (
        [],
        "The forward pass of micro-batch 0 in chunk 0 on stage 0 is missing",
    ),
    "twice": (
        [[0, 0, 0, F], [1, 0, 0, F], [1, 0, 0, F], [1, 0, 0, B], [0, 0, 0, B]],
        "on stage 1 is there 2 times",
    ),
    "back first": (
        [[0, 0, 0, F], [1, 0, 0, B], [1, 0, 0, F], [0, 0, 0, B]],
        "The backward pass of micro-batch 0 in chunk 0 on stage 1 is next there, and "
        "needs the forward pass of micro-batch 0 in chunk 0 on stage 1",
    ),
    "another stage": ([[2, 0, 0, F]], "`stage` is 0 to 1"),
    "another chunk": ([[0, 1, 0, F]], "`chunk` is 0 to 0"),
    "a micro-batch below": ([[0, 0, -1, F]], "`micro_batch` is 0 to 0"),
    "another way": ([[0, 0, 0, 2]], "`backward` is 0 to 1"),
    "a short row": ([[0, 0, 0]], "A row has 3 numbers; it must have stage"),
    "too many": ([[0, 0, 0, F]] * 20_000, "at most 16384 are run"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(lab: LoadedLab, name: str) -> None:
    schedule, words = BROKEN[name]
    given = {"stages": 2, "micro_batches": 1}
    capped = {**given, "backward": 2, "most_held": 1}
    for question in (
        Question("gpipe", given),
        Question("one_f_one_b", given),
        Question("interleaved", {**given, "chunks": 1}),
        Question("capped", capped),
    ):
        assert words in lab.cases.judge(question, schedule)


def test_stages_that_wait_for_one_another_are_told(lab: LoadedLab) -> None:
    # stage 0 wants its gradient before it goes on, and stage 1 the next micro-batch
    rows = [[0, 0, 0, F], [0, 0, 0, B], [0, 0, 1, F], [0, 0, 1, B]]
    rows += [[1, 0, 0, F], [1, 0, 1, F], [1, 0, 0, B], [1, 0, 1, B]]
    question = Question("one_f_one_b", {"stages": 2, "micro_batches": 2})
    assert lab.cases.judge(question, rows) == (
        "Nothing goes on. The forward pass of micro-batch 1 in chunk 0 on stage 1 is "
        "next there, and needs the forward pass of micro-batch 1 in chunk 0 on stage "
        "0, which comes later or waits, too."
    )
