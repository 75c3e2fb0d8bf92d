"""Schedules of a pipeline, run stage by stage: dependencies, memory and time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from warpbook_labs.lab.python.questions import Question

Schedule = list[list[int]]

_MOST_ROWS = 16_384
_SLOWER = 1.05


class _BrokenRule(ValueError):
    """A schedule can't be run; the message names the rule."""


class _Work(NamedTuple):
    """One pass of one micro-batch through one chunk of a stage."""

    stage: int
    chunk: int
    micro_batch: int
    backward: int

    def __str__(self) -> str:
        kind = "backward" if self.backward else "forward"
        return (
            f"the {kind} pass of micro-batch {self.micro_batch} in chunk {self.chunk} "
            f"on stage {self.stage}"
        )


class _Pipeline(NamedTuple):
    """So many stages with chunks of layers, and the micro-batches of a step."""

    stages: int
    chunks: int
    micro_batches: int

    def needs(self, work: _Work) -> list[_Work]:
        """Give what must be done before a pass."""
        last = self.stages * self.chunks - 1
        place = work.chunk * self.stages + work.stage
        if not work.backward:
            return [self._at(place - 1, work)] if place else []
        forward = work._replace(backward=0)
        return [forward] if place == last else [forward, self._at(place + 1, work)]

    def _at(self, place: int, work: _Work) -> _Work:
        chunk, stage = divmod(place, self.stages)
        return work._replace(stage=stage, chunk=chunk)


class _Run(NamedTuple):
    """What a schedule comes to: times in forward passes of a chunk."""

    time: int
    #: most chunks of activations that a stage holds at a time, by stage
    held: list[int]


def _orders(pipeline: _Pipeline, schedule: Schedule) -> list[list[_Work]]:
    """Give each stage's passes in their order.

    Raises:
        _BrokenRule: a row is none, or a pass is missing or there twice.
    """
    if len(schedule) > _MOST_ROWS:
        raise _BrokenRule(f"It has {len(schedule)} rows; at most {_MOST_ROWS} are run.")
    orders: list[list[_Work]] = [[] for _ in range(pipeline.stages)]
    bounds = (*pipeline, 2)
    for row in schedule:
        if len(row) != len(bounds):
            words = ", ".join(_Work._fields)
            raise _BrokenRule(f"A row has {len(row)} numbers; it must have {words}.")
        for name, number, bound in zip(_Work._fields, row, bounds, strict=True):
            if not 0 <= number < bound:
                raise _BrokenRule(f"{row}: `{name}` is 0 to {bound - 1}.")
        orders[row[0]].append(_Work(*row))
    counts = Counter(work for order in orders for work in order)
    for work in _all_work(pipeline):
        if counts[work] != 1:
            words = (
                "is missing" if not counts[work] else f"is there {counts[work]} times"
            )
            raise _BrokenRule(f"{_capital(work)} {words}.")
    return orders


def _all_work(pipeline: _Pipeline) -> Iterator[_Work]:
    for stage in range(pipeline.stages):
        for chunk in range(pipeline.chunks):
            for micro_batch in range(pipeline.micro_batches):
                yield _Work(stage, chunk, micro_batch, 0)
                yield _Work(stage, chunk, micro_batch, 1)


def _capital(work: _Work) -> str:
    words = str(work)
    return words[0].upper() + words[1:]


def _run(pipeline: _Pipeline, backward: int, schedule: Schedule) -> _Run:
    """Run each stage's passes as early as their order and what they need allow.

    Args:
        pipeline: what is run.
        backward: how many times a forward pass a backward pass takes.
        schedule: rows of a learner's.

    Raises:
        _BrokenRule: a row is none, or a stage waits for what comes never.
    """
    orders = _orders(pipeline, schedule)
    ends: dict[_Work, int] = {}
    free, at = [0] * pipeline.stages, [0] * pipeline.stages
    while len(ends) < len(schedule):
        before = len(ends)
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                work = order[at[stage]]
                needs = pipeline.needs(work)
                if any(need not in ends for need in needs):
                    break
                begin = max([free[stage], *(ends[need] for need in needs)])
                free[stage] = ends[work] = begin + (backward if work.backward else 1)
                at[stage] += 1
        if len(ends) == before:
            raise _BrokenRule(_stuck(pipeline, orders, at, ends))
    return _Run(max(free), [_held(order) for order in orders])


def _stuck(
    pipeline: _Pipeline,
    orders: list[list[_Work]],
    at: list[int],
    ends: dict[_Work, int],
) -> str:
    stage = next(stage for stage, order in enumerate(orders) if at[stage] < len(order))
    passed: set[int] = set()
    while True:
        # from who waits to whom it waits for, until that is the mistake
        work = orders[stage][at[stage]]
        need = next(need for need in pipeline.needs(work) if need not in ends)
        passed.add(stage)
        if need.stage in passed:
            break
        stage = need.stage
    return (
        f"Nothing goes on. {_capital(work)} is next there, and needs {need}, which "
        "comes later or waits, too."
    )


def _held(order: list[_Work]) -> int:
    held = most = 0
    for work in order:
        held += -1 if work.backward else 1
        most = max(most, held)
    return most


def _ideal(pipeline: _Pipeline, backward: int) -> int:
    """Give the time in which a stage works."""
    return pipeline.micro_batches * pipeline.chunks * (1 + backward)


def _least_time(pipeline: _Pipeline, backward: int) -> int:
    """Give the time with a bubble of stages - 1 chunks, there and back."""
    return _ideal(pipeline, backward) + (pipeline.stages - 1) * (1 + backward)


def _eager(pipeline: _Pipeline, backward: int, most_held: int) -> Schedule:
    """Have each free stage go back if it can, else forward if it may hold more.

    Args:
        pipeline: with one chunk for each stage.
        backward: how many times a forward pass a backward pass takes.
        most_held: micro-batches on a stage; no stage needs more than those behind it.
    """
    ends: dict[_Work, int] = {}
    free, begun, finished = ([0] * pipeline.stages for _ in range(3))
    now = 0
    while min(finished) < pipeline.micro_batches:
        for stage in range(pipeline.stages):
            room = min(most_held, pipeline.stages - stage)
            ways = [_Work(stage, 0, finished[stage], 1)]
            if begun[stage] - finished[stage] < room:
                ways.append(_Work(stage, 0, begun[stage], 0))
            can = (
                work
                for work in ways
                if work.micro_batch < pipeline.micro_batches
                and all(ends.get(need, now + 1) <= now for need in pipeline.needs(work))
            )
            work = next(can, None) if free[stage] <= now else None
            if work is not None:
                free[stage] = ends[work] = now + (backward if work.backward else 1)
                (finished if work.backward else begun)[stage] += 1
        now += 1
    return [list(work) for work in ends]


def _drawn_rows(pipeline: _Pipeline, rng: random.Random) -> Schedule:
    """Draw an order in which a pipeline can be run, by doing passes at random."""
    done: set[_Work] = set()
    left = list(_all_work(pipeline))
    rows = []
    while left:
        can = [work for work in left if done.issuperset(pipeline.needs(work))]
        # later stages and backward passes more often, so that it is no GPipe
        work = max(rng.sample(can, min(3, len(can))), key=lambda one: one.backward)
        done.add(work)
        left.remove(work)
        rows.append(list(work))
    return rows


def questions(rng: random.Random) -> list[Question]:
    """Draw pipelines, schedules to be timed, and bounds on what stages hold."""
    drawn = []
    sizes = {
        "the pipeline of the text": (8, 32),
        "one stage": (1, rng.randint(2, 5)),
        "fewer micro-batches than stages": (rng.choice((5, 6, 7)), 3),
        "any pipeline": (rng.choice((2, 3, 4, 6)), rng.randint(7, 20)),
    }
    for about, (stages, micro_batches) in sizes.items():
        given = {"stages": stages, "micro_batches": micro_batches}
        for function in ("gpipe", "one_f_one_b"):
            drawn.append(Question(function, given, about))
    larger = (rng.choice((3, 4, 5)), rng.choice((3, 4)), rng.randint(2, 4))
    for about, stages, chunks, rounds in (
        ("the pipeline of the text", 8, 2, 4),
        ("more chunks", *larger),
        ("as many micro-batches as stages", rng.choice((3, 4, 6)), 2, 1),
        ("one chunk", rng.choice((3, 4)), 1, 3),
    ):
        given = {"stages": stages, "chunks": chunks, "micro_batches": rounds * stages}
        drawn.append(Question("interleaved", given, about))
    backwards = rng.sample((1, 2, 3), 3)
    for chunks, backward in enumerate(backwards, 1):
        pipeline = _Pipeline(rng.randint(2, 4), chunks, rng.randint(3, 5))
        rows = _drawn_rows(pipeline, rng)
        timed = {**pipeline._asdict(), "backward": backward, "schedule": rows}
        about = "one chunk" if chunks == 1 else f"{chunks} chunks"
        drawn.append(Question("total_time", timed, about))
    for about, stages, most_held in (
        ("one micro-batch at a time", rng.choice((3, 4)), 1),
        ("less memory than 1F1B wants", 8, rng.choice((3, 5))),
        ("less memory than 1F1B wants", 6, rng.choice((2, 4))),
        ("more memory than 1F1B wants", rng.choice((3, 4)), 6),
    ):
        given = {"stages": stages, "micro_batches": rng.randint(12, 24)}
        given |= {"backward": rng.choice((1, 2, 3)), "most_held": most_held}
        drawn.append(Question("capped", given, about))
    return drawn


def judge(question: Question, answer: Any) -> str:
    """Run a schedule, and hold what it takes and holds against what is enough."""
    given = question.arguments
    pipeline = _Pipeline(
        given["stages"], given.get("chunks", 1), given["micro_batches"]
    )
    if question.function == "total_time":
        right = _run(pipeline, given["backward"], given["schedule"]).time
        return "" if answer == right else f"Returned {answer}; expected {right}."
    backward = given.get("backward", 2)
    try:
        run = _run(pipeline, backward, answer)
    except _BrokenRule as problem:
        return str(problem)
    if question.function == "gpipe":
        words = _early_backward(_orders(pipeline, answer))
        enough = _least_time(pipeline, backward)
        return words or _too_long(pipeline, backward, run, enough)
    if question.function == "capped":
        most = [given["most_held"]] * pipeline.stages
        known = _eager(pipeline, backward, given["most_held"])
        enough = int(_SLOWER * _run(pipeline, backward, known).time)
    else:
        most, enough = _most_held(pipeline), _least_time(pipeline, backward)
    return _too_much(pipeline, run, most) or _too_long(pipeline, backward, run, enough)


def _most_held(pipeline: _Pipeline) -> list[int]:
    """Give the chunks that 1F1B has begun on each stage, as Megatron-LM counts them."""
    stages, chunks, micro_batches = pipeline
    every = chunks * micro_batches
    return [
        min(every, stages - stage)
        if chunks == 1
        else min(every, 2 * (stages - stage - 1) + (chunks - 1) * stages + 1)
        for stage in range(stages)
    ]


def _early_backward(orders: list[list[_Work]]) -> str:
    for order in orders:
        kinds = [work.backward for work in order]
        if kinds != sorted(kinds):
            work = order[kinds.index(1)]
            return f"{_capital(work)} comes before its stage went forward with all."
    return ""


def _too_much(pipeline: _Pipeline, run: _Run, most: list[int]) -> str:
    for stage, (held, may) in enumerate(zip(run.held, most, strict=True)):
        if held > may:
            what = "chunks" if pipeline.chunks > 1 else "micro-batches"
            return (
                f"Stage {stage} holds the activations of {held} {what} at a time; "
                f"{may} are enough."
            )
    return ""


def _too_long(pipeline: _Pipeline, backward: int, run: _Run, enough: int) -> str:
    if run.time <= enough:
        return ""
    ideal = _ideal(pipeline, backward)
    bubble, least = 1 - ideal / run.time, 1 - ideal / enough
    return (
        f"It takes as long as {run.time} forward passes of a chunk, with a bubble of "
        f"{bubble:.4f}; {enough} are enough, with a bubble of {least:.4f}."
    )
