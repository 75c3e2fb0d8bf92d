"""Plans of parallel training are priced as schedules and published figures say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.lab_checks import check_plan
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question

LAB = "parallel-plans"

Work = tuple[str, int, int]
MODEL = {
    "layers": 32,
    "hidden": 1024,
    "heads": 8,
    "kv_heads": 8,
    "head_size": 128,
    "intermediate": 4096,
    "vocabulary": 8,
    "sequence": 65_536,
}


def work_of(stages: int, micro_batches: int, chunks: int, stage: int) -> list[Work]:
    """Order a stage's passes as Megatron-LM's 1F1B and interleaved schedules do."""
    total, around = micro_batches * chunks, stages * chunks

    def forward(place: int) -> Work:
        return "forward", place // around * stages + place % stages, _chunk(place)

    def backward(place: int) -> Work:
        micro_batch = place // around * stages + place % stages
        return "backward", micro_batch, chunks - 1 - _chunk(place)

    def _chunk(place: int) -> int:
        return place // stages % chunks

    ahead = stages - stage - 1
    if chunks > 1:
        ahead = 2 * ahead + (chunks - 1) * stages
    ahead = min(ahead, total)
    order = [forward(place) for place in range(ahead)]
    for place in range(total - ahead):
        order += [forward(ahead + place), backward(place)]
    return order + [backward(place) for place in range(total - ahead, total)]


def run_pipeline(stages: int, micro_batches: int, chunks: int) -> float:
    """Run the schedule with passes of 1 and 2; give the share that GPUs wait."""
    last = stages * chunks - 1
    orders = [work_of(stages, micro_batches, chunks, stage) for stage in range(stages)]
    places, free_at = [0] * stages, [0.0] * stages
    ended: dict[Work, float] = {}

    def ready(stage: int) -> Iterator[tuple[Work, float]]:
        while places[stage] < len(orders[stage]):
            kind, micro_batch, chunk = orders[stage][places[stage]]
            layer = chunk * stages + stage
            before = (kind, micro_batch, layer + (-1 if kind == "forward" else 1))
            if (kind, layer) == ("backward", last):
                before = ("forward", micro_batch, layer)
            if (kind, layer) != ("forward", 0) and before not in ended:
                return
            begin = max(free_at[stage], ended.get(before, 0.0))
            yield (kind, micro_batch, layer), begin

    while any(places[stage] < len(orders[stage]) for stage in range(stages)):
        for stage in range(stages):
            for work, begin in ready(stage):
                length = (1 if work[0] == "forward" else 2) / chunks
                ended[work] = free_at[stage] = begin + length
                places[stage] += 1
    return 1 - 3 * micro_batches / max(free_at)


@pytest.mark.parametrize(
    ("stages", "chunks", "micro_batches", "published"),
    [(8, 1, 32, 0.1795), (8, 2, 32, 0.0986), (4, 4, 16, None), (16, 1, 16, None)],
)
def test_bubbles_are_those_of_schedules_that_are_run(
    lab: LoadedLab, stages: int, chunks: int, micro_batches: int, published: float
) -> None:
    sizes = {"stages": stages, "chunks": chunks, "micro_batches": micro_batches}
    question = Question("bubble_share", sizes)
    share = run_pipeline(stages, micro_batches, chunks)
    assert published is None or share == pytest.approx(published, abs=5e-5)
    assert lab.cases.judge(question, share) == ""
    assert "expected" in lab.cases.judge(question, 1.01 * share)
    assert "expected" in lab.cases.judge(question, float("nan"))


@pytest.mark.parametrize(("stages", "chunks", "micro_batches"), [(4, 3, 8), (8, 1, 16)])
def test_activations_in_flight_are_those_of_schedules(
    lab: LoadedLab, stages: int, chunks: int, micro_batches: int
) -> None:
    first = work_of(stages, micro_batches, chunks, 0)
    held, most = 0, 0
    for kind, _, _ in first:
        held += 1 if kind == "forward" else -1
        most = max(most, held)
    model = {**MODEL, "layers": stages * chunks}
    plan = {
        "tensor": 1,
        "pipeline": stages,
        "data": 1,
        "chunks": chunks,
        "micro_batch": 1,
        "sequence_parallel": 0,
        "sharded_optimizer": 0,
        "recompute": 1,
    }
    # weights are small beside inputs of layers: 2 bytes for 1,024 numbers of a token
    weights = 16 * (chunks * (4 * 1024**2 + 3 * 4 * 1024**2 + 2048) + 8 * 1024)
    needed = weights + most * 2 * 1024 * 65_536 + 8 * 65_536 * most / chunks
    question = Question(
        "memory_bytes", {"model": model, "batch": micro_batches, "plan": plan}
    )
    assert lab.cases.judge(question, needed) == ""


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"data": 3}, "not the number of GPUs"),
        ({"tensor": 32}, "`tensor` does not divide"),
        ({"pipeline": 32, "data": 1, "chunks": 7}, "does not divide the layers"),
        ({"micro_batch": 4096}, "does not divide the global batch"),
        ({"recompute": 2}, "`recompute` is 2; it is 0 to 1"),
        ({"tensor": -1}, "`tensor` is -1"),
        ({"experts": 1}, "has the keys"),
        ({"chunks": 2}, "interleaved schedule"),
        ({"sequence_parallel": 1}, "splits the sequence"),
    ],
)
def test_a_plan_that_can_not_be_run_is_refused_with_its_rule(
    lab: LoadedLab, values: dict[str, int], rule: str
) -> None:
    plan = {
        "tensor": 1,
        "pipeline": 1,
        "data": 32,
        "chunks": 1,
        "micro_batch": 1,
        "sequence_parallel": 0,
        "sharded_optimizer": 0,
        "recompute": 0,
    }
    if "tensor" in values and values["tensor"] > 1:
        values = {**values, "data": 1}
    case = {"model": MODEL, "cluster": {"gpus": 32}, "batch": 128}
    words = lab.cases.judge(Question("plan", case), {**plan, **values})
    assert rule in words


def test_every_draw_has_an_answer_and_a_plan_is_not_found_by_habit(
    lab: LoadedLab, written: ModuleType
) -> None:
    for seed in range(300, 304):
        for question in lab.cases.questions(random.Random(seed)):
            arguments = list(question.arguments.values())
            if question.function == "bubble_share":
                arguments = [
                    question.arguments[name]
                    for name in ("stages", "chunks", "micro_batches")
                ]
            answer = getattr(written, question.function)(*arguments)
            assert lab.cases.judge(question, answer) == "", (seed, question)
            if question.function == "plan":
                most = dict(answer, recompute=1 - answer["recompute"])
                assert lab.cases.judge(question, most) != "", (seed, question)


def test_a_slow_plan_is_told_where_its_time_goes(lab: LoadedLab) -> None:
    slow = lab.reference.replace("return min(fitting", "return max(fitting")
    result = check_plan(lab, slow, seed=7)
    assert result.status == "failed" and result.message.startswith("plan: 0 of")
    shown = [case for case in result.cases if not case.passed and not case.is_hidden]
    assert all("A step takes" in case.message for case in shown)
    assert all("bubble" in case.message for case in shown)


def test_counts_of_a_plan_may_be_whole_floats_and_truths(lab: LoadedLab) -> None:
    source = lab.reference + (
        "\n\nexact = plan\n\n\ndef plan(model, cluster, batch):\n"
        "    numbers = exact(model, cluster, batch)\n"
        "    return {name: float(number) for name, number in numbers.items()} | {\n"
        "        'sequence_parallel': numbers['sequence_parallel'] == 1\n    }\n"
    )
    assert check_plan(lab, source, seed=7).status == "passed"
