"""What the lab's ranks say of functions that exchange too much, or wait for nobody."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.course.session import check_public
from warpbook_labs.lab.loaded import LoadedLab

LAB = "parallelism-by-hand"

torch: Any = pytest.importorskip("torch")

Work = Callable[[Any], Any]


@pytest.fixture(scope="module")
def given(lab: LoadedLab) -> Iterator[Any]:
    module = ModuleType("given")
    exec(compile(lab.given, "given.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_collectives_give_what_torch_does_and_count_a_ring(
    given: Any, size: int
) -> None:
    whole = torch.arange(14.0).view(7, 2)

    async def work(comm: Any) -> tuple[Any, Any, Any]:
        rows = await comm.all_gather(given.own_rows(whole, comm.rank, size))
        total = await comm.all_reduce(whole * (comm.rank + 1))
        own = await comm.reduce_scatter(whole * (comm.rank + 1))
        return rows, total, own

    results, traffic = given.run_ranks(work, size)
    times = size * (size + 1) / 2
    for rank, (rows, total, own) in enumerate(results):
        assert torch.equal(rows, whole)
        assert torch.equal(total, whole * times)
        assert torch.equal(own, given.own_rows(whole * times, rank, size))
    # 56 bytes around a ring: once each, and twice in the all-reduce
    assert sum(traffic.sent_bytes) == 4 * (size - 1) * 56
    assert sum(traffic.received_bytes) == sum(traffic.sent_bytes)
    assert traffic.messages == [4 * (size - 1)] * size


def test_what_is_sent_is_what_was_there_then(given: Any) -> None:
    async def work(comm: Any) -> Any:
        x = torch.full((3,), float(comm.rank))
        if comm.rank == 0:
            sending = comm.send(x, 1)
            x += 7
            await sending
            return x
        return await comm.receive(x, 0)

    results, traffic = given.run_ranks(work, 2)
    assert [one.tolist() for one in results] == [[7.0] * 3, [0.0] * 3]
    assert (traffic.sent_bytes, traffic.received_bytes) == ([12, 0], [0, 12])
    assert traffic.messages == [1, 0]


async def _waits_in_a_circle(comm: Any) -> None:
    x = torch.ones(2)
    await comm.send(x, (comm.rank + 1) % comm.size)
    await comm.receive(x, (comm.rank - 1) % comm.size)


async def _other_orders(comm: Any) -> None:
    x = torch.ones(2)
    if comm.rank == 2:
        await comm.all_gather(x)
    await comm.all_reduce(x)


async def _one_leaves(comm: Any) -> None:
    if comm.rank != 1:
        await comm.all_reduce(torch.ones(2))


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (
            _waits_in_a_circle,
            r"rank 0 waits in send \(line \d+\) for rank 1; rank 1 waits .* for rank 2;"
            r" rank 2 waits .* for rank 0",
        ),
        (
            _other_orders,
            r"rank 0 waits in all_reduce .* for rank 2; rank 1 waits in all_reduce .*"
            r" rank 2; rank 2 waits in all_gather \(line \d+\) for ranks 0, 1",
        ),
        (
            _one_leaves,
            r"rank 0 waits .* for rank 1; rank 1 has ended; rank 2 waits .* for rank 1",
        ),
    ],
)
def test_a_deadlock_says_which_rank_waits_for_whom(
    given: Any, work: Work, words: str
) -> None:
    with pytest.raises(given.Deadlock) as problem:
        given.run_ranks(work, 3)
    assert re.fullmatch(words, str(problem.value)), problem.value


async def _other_shapes(comm: Any) -> None:
    await comm.all_reduce(torch.ones(2 + comm.rank, 3))


async def _no_await(comm: Any) -> None:
    comm.all_reduce(torch.ones(2))


async def _used_without_await(comm: Any) -> None:
    comm.all_reduce(torch.ones(2)) + torch.ones(2)


async def _another_await(comm: Any) -> None:
    await asyncio.sleep(0)


def _no_coroutine(comm: Any) -> None:
    return None


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (
            _other_shapes,
            r"rank 0 has \[2, 3\] .*; rank 1 has \[3, 3\] .* in all_reduce",
        ),
        (_no_await, r"all_reduce \(line \d+\) has no `await`"),
        (_used_without_await, r"all_reduce \(line \d+\) has no `await`"),
        (_another_await, "awaits what `comm` gives, and nothing else"),
        (_no_coroutine, "begin with `async def`"),
    ],
)
def test_other_mistakes_of_ranks_are_named(given: Any, work: Work, words: str) -> None:
    with pytest.raises((given.Mismatch, RuntimeError, TypeError), match=words):
        given.run_ranks(work, 2)


def test_a_submission_is_told_how_many_bytes_suffice(lab: LoadedLab) -> None:
    result = check_public(lab, lab.wrong["all_reduce_for_reduce_scatter.py"]).result
    assert result.status == "failed" and result.right == 0
    # of 6 rows of 4: four exchanges of 96 bytes and the scale's 2 * 16 on both ranks
    words = "sequence_parallel: the ranks sent 512 bytes, and 416 suffice"
    assert words in result.cases[0].message
    assert re.search(r"all_reduce \(line \d+\) 96", result.cases[0].message)
    # no grader has ranks on several GPUs, and the result says so
    assert "Ranks on several GPUs are not graded" in " ".join(result.not_graded)


@pytest.mark.parametrize("is_whole", [True, False])
def test_gradients_joined_out_of_order_show_in_the_sizes_of_the_calls(
    given: Any, is_whole: bool
) -> None:
    grads = [torch.ones(count) for count in (20, 4, 20, 4)]
    buckets = given.buckets_of(grads, 4 * 28)
    assert buckets == [24, 24]

    async def work(comm: Any) -> None:
        for places in ((0, 1, 3), (2,)):
            joined = torch.cat([grads[place] for place in places])
            if is_whole:
                await comm.all_reduce(joined)
            else:
                await comm.all_gather(await comm.reduce_scatter(joined))

    _, traffic = given.run_ranks(work, 3)
    with pytest.raises(given.WrongBuckets, match=r"\[28, 20\] .* \[24, 24\]"):
        given.refuse_other_buckets(traffic, buckets)


def test_a_run_of_the_submission_is_not_called(lab: LoadedLab) -> None:
    source = lab.starter + (
        "\n\ndef run(functions, **tensors):\n    raise RuntimeError('called')\n"
    )
    result = check_public(lab, source).result
    assert result.status == "failed"
    assert all("tp_out" in case.message for case in result.cases)
