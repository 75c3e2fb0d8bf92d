"""Questions on one's own source: the engine knows the answer, or nothing is asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest
from msgspec.structs import replace

from warpbook_labs.course.session import check_public, find
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.mutation import own_questions as module
from warpbook_labs.mutation.own_questions import OwnQuestion, draw_questions

LANES = "eights_of_lanes.cu"


def drawn(loaded: LoadedLab, source: str, *seeds: int) -> Iterator[OwnQuestion]:
    result = check_public(loaded, source, use_gpu=False).result
    assert result.status == "passed", result.message
    for seed in seeds:
        yield from draw_questions(loaded, source, result, seed)


def right(question: OwnQuestion) -> str:
    assert len(set(question.choices)) == len(question.choices) >= 2
    return question.choices[question.right]


def by_words(questions: Iterator[OwnQuestion]) -> dict[str, OwnQuestion]:
    """Give one question of each kind, by the first word that only it has."""
    kinds = {"moves most bytes": "bytes", "launches blocks": "block", "race": "barrier"}
    return {
        kind: question
        for question in questions
        for words, kind in kinds.items()
        if words in question.ask
    }


def test_three_kinds_are_drawn_from_a_reduction() -> None:
    loaded = find("reduction-and-scan")
    source = loaded.correct[LANES]
    lines = source.split("\n")
    asked = by_words(drawn(loaded, source, *range(4)))
    assert set(asked) == {"bytes", "block", "barrier"}
    barrier = asked["barrier"]
    at = int(barrier.ask.split("barrier on line ")[1].split()[0])
    assert "__syncthreads" in lines[at - 1]
    assert "nothing says who comes first" in barrier.because
    for line in right(barrier).removeprefix("Lines ").rstrip(".").split(" and "):
        assert f"on line {line}" in barrier.because
    # the line is named with the bytes that it moves
    named = right(asked["bytes"]).split(":")[0]
    assert asked["bytes"].because.startswith(
        f"The interpreter counts: {named.lower()}: "
    )


def test_blocks_of_another_size_are_checked_and_not_guessed() -> None:
    loaded = find("vector-add")
    stride = loaded.correct["grid_stride.cu"]
    each = loaded.correct["one_element_each.cu"]
    of_stride = by_words(drawn(loaded, stride, *range(3)))["block"]
    assert right(of_stride) == "Nothing: all results stay right."
    of_each = by_words(drawn(loaded, each, *range(3)))["block"]
    assert right(of_each).startswith("A wrong or missing element")
    assert "With 64 there" in of_each.ask


def test_lines_with_other_numbers_are_asked_nothing() -> None:
    loaded = find("vector-add")
    source = f"#line 5000\n{loaded.correct['one_element_each.cu']}"
    assert list(drawn(loaded, source, *range(3))) == []


def test_a_source_of_thousands_of_lines_is_asked_soon(monkeypatch) -> None:
    """All pairs of its lines would be more than memory holds."""
    loaded = find("reduction-and-scan")
    source = loaded.correct[LANES]
    result = check_public(loaded, source, use_gpu=False).result
    case, *more = result.cases
    counts = next(iter(case.lines.values()))
    long = replace(case, lines=dict.fromkeys(range(1, 9_001), counts))
    many = replace(result, cases=(long, *more))
    monkeypatch.setattr(module, "_checked", lambda loaded, changed: result)
    source += "\n" * 9_000
    questions = (draw_questions(loaded, source, many, seed) for seed in range(4))
    asked = by_words(chain.from_iterable(questions))
    assert right(asked["barrier"]) == "No lines: nothing races in the cases shown."


def test_what_a_source_does_not_have_is_not_asked() -> None:
    loaded = find("vector-add")
    source = loaded.correct["one_element_each.cu"]
    result = check_public(loaded, source, use_gpu=False).result
    for seed in range(4):
        questions = draw_questions(loaded, source, result, seed)
        # drawn again it is the same one
        assert questions == draw_questions(loaded, source, result, seed)
        assert len(questions) == 2
        assert not any("barrier" in question.ask for question in questions)


@pytest.mark.parametrize(
    "text",
    ["// __syncthreads();", '/* __syncthreads(); */ // "__syncthreads();"'],
)
def test_a_barrier_in_a_comment_is_none(text: str) -> None:
    loaded = find("vector-add")
    source = loaded.correct["one_element_each.cu"] + text
    assert "barrier" not in by_words(drawn(loaded, source, 0, 1))


def test_a_source_in_triton_is_asked_for_its_bytes_alone() -> None:
    loaded = find("fused-norm")
    source = next(iter(loaded.correct.values()))
    assert set(by_words(drawn(loaded, source, 0))) <= {"bytes"}


def test_an_answer_of_a_plan_is_asked_nothing() -> None:
    loaded = find("pipeline-schedules")
    source = next(iter(loaded.correct.values()))
    assert list(drawn(loaded, source, 0)) == []
