"""Chains of blocks, and plans that recompute some of them under a cap on memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from warpbook_labs.lab.python.questions import Question

Segments = list[list[int]]
Blocks = list[dict[str, int]]

_MOST_DRAWS = 400
#: whose best segments are longer than others'
_SMALL_FIRST = "small blocks before large ones"
_LONG = 8


class _BrokenRule(ValueError):
    """What was answered is no plan; the message names the rule."""


class _Cost(NamedTuple):
    """What is held of a chain so far, and what is recomputed of it."""

    held_mib: int
    recomputed_gflop: int


class _Chain(NamedTuple):
    """Blocks that run one after the other."""

    blocks: Blocks

    def saved_mib(self, first: int, end: int) -> int:
        return sum(block["saved_mib"] for block in self.blocks[first:end])

    def recomputed_gflop(self, first: int, end: int) -> int:
        """Give the operations of a segment up to its last saved tensor."""
        gflop = sum(block["gflop"] for block in self.blocks[first:end])
        return gflop - self.blocks[end - 1]["tail_gflop"]

    def steps(self, segments: Segments) -> Iterator[tuple[int, int, bool]]:
        """Give what comes one after the other: first block, end, is it a segment.

        Raises:
            _BrokenRule: a segment is none, or they are not in order.
        """
        done = 0
        for row in segments:
            if len(row) != 2:
                raise _BrokenRule(
                    f"A row has {len(row)} numbers; it must have first and end."
                )
            first, end = row
            if not 0 <= first < end <= len(self.blocks):
                raise _BrokenRule(
                    f"{row} is no segment of {len(self.blocks)} blocks: first is 0 or "
                    f"more and below end, and end at most {len(self.blocks)}."
                )
            if first < done:
                raise _BrokenRule(f"{row} begins before the segment before it ends.")
            yield from ((block, block + 1, False) for block in range(done, first))
            yield first, end, True
            done = end
        yield from (
            (block, block + 1, False) for block in range(done, len(self.blocks))
        )


def _peak_mib(chain: _Chain, segments: Segments) -> int:
    """Give the most that is saved at once.

    Raises:
        _BrokenRule: the segments are no plan.
    """
    held = peak = 0
    for first, end, is_segment in chain.steps(segments):
        saved = chain.saved_mib(first, end)
        peak = max(peak, held + saved)
        held += chain.blocks[first]["input_mib"] if is_segment else saved
    return peak


def _recomputed_gflop(chain: _Chain, segments: Segments) -> int:
    """Give the operations that the backward pass does again.

    Raises:
        _BrokenRule: the segments are no plan.
    """
    return sum(
        chain.recomputed_gflop(first, end)
        for first, end, is_segment in chain.steps(segments)
        if is_segment
    )


def _least_gflop(chain: _Chain, cap_mib: int, longest: int = 1_000) -> int | None:
    """Give the least recomputation under a cap; None if no plan keeps to it.

    Args:
        chain: the blocks.
        cap_mib: what may be saved at once.
        longest: blocks in a segment, at most.
    """
    count = len(chain.blocks)
    fronts: list[list[_Cost]] = [[_Cost(0, 0)], *([] for _ in range(count))]
    for first, block in enumerate(chain.blocks):
        for held, recomputed in _front(fronts[first]):
            if held + block["saved_mib"] <= cap_mib:
                fronts[first + 1].append(_Cost(held + block["saved_mib"], recomputed))
            for end in range(first + 1, min(count, first + longest) + 1):
                if held + chain.saved_mib(first, end) > cap_mib:
                    break
                gflop = recomputed + chain.recomputed_gflop(first, end)
                fronts[end].append(_Cost(held + block["input_mib"], gflop))
    return min((cost.recomputed_gflop for cost in fronts[count]), default=None)


def _front(costs: list[_Cost]) -> Iterator[_Cost]:
    """Give those than which none both holds less and recomputes less."""
    least: int | None = None
    for cost in sorted(costs):
        if least is None or cost.recomputed_gflop < least:
            least = cost.recomputed_gflop
            yield cost


def _least_peak_mib(chain: _Chain) -> int:
    """Give the smallest cap that a plan keeps to."""
    low, high = 0, chain.saved_mib(0, len(chain.blocks))
    while low < high:
        middle = (low + high) // 2
        if _least_gflop(chain, middle) is None:
            low = middle + 1
        else:
            high = middle
    return low


def questions(rng: random.Random) -> list[Question]:
    """Draw chains with plans to be priced, and caps to be kept to."""
    drawn = []
    for about, count, is_even in (
        ("equal blocks", rng.randint(6, 9), True),
        ("uneven blocks", rng.randint(7, 10), False),
        ("uneven blocks", rng.randint(11, 14), False),
    ):
        blocks = _blocks(rng, count, is_even)
        given = {"blocks": blocks, "segments": _segments(rng, count)}
        drawn.append(Question("peak_mib", given, about))
        drawn.append(Question("recomputed_gflop", given, about))
    ends_late = _blocks(rng, 6, False)
    ends_late[4]["saved_mib"] = sum(block["saved_mib"] for block in ends_late)
    for about, segments in (
        ("nothing recomputed", []),
        ("all in one segment", [[0, 6]]),
        ("a large segment after a small one", [[0, 2], [2, 6]]),
    ):
        given = {"blocks": ends_late, "segments": segments}
        drawn.append(Question("peak_mib", given, about))
        drawn.append(Question("recomputed_gflop", given, about))
    for about, count, is_even in (
        ("equal blocks", rng.randint(9, 16), True),
        ("uneven blocks", rng.randint(8, 10), False),
        ("uneven blocks", rng.randint(14, 18), False),
        ("uneven blocks", rng.randint(19, 24), False),
        (_SMALL_FIRST, rng.randint(17, 20), False),
    ):
        drawn.append(_capped(rng, about, count, is_even))
    for least_count in (9, 13, 17, 17, 17):
        blocks = _blocks(rng, least_count + rng.randint(0, 3), False)
        if least_count < 17:
            # of small blocks a cap that is one more lets in another plan
            for block in blocks:
                block["input_mib"] = rng.randint(2, 5)
                block["saved_mib"] = block["input_mib"] + rng.randint(1, 12)
        chain = _Chain(blocks)
        least, whole = _least_peak_mib(chain), chain.saved_mib(0, len(chain.blocks))
        for about, cap_mib in (
            ("a cap that all activations keep to", whole),
            ("the smallest cap that can be kept to", least),
            ("a cap that can't be kept to", rng.randint(least // 2, least - 1)),
            ("a cap that can't be kept to", least - rng.randint(1, 7)),
        ):
            given = {"blocks": chain.blocks, "cap_mib": cap_mib}
            drawn.append(Question("plan", given, about))
    return drawn


def _blocks(rng: random.Random, count: int, is_even: bool) -> Blocks:
    """Draw blocks whose inputs are a part of what they save."""
    one = _block(rng)
    return [dict(one) if is_even else _block(rng) for _ in range(count)]


def _block(rng: random.Random) -> dict[str, int]:
    input_mib = rng.randint(8, 40)
    gflop = rng.randint(20, 200)
    return {
        "input_mib": input_mib,
        "saved_mib": input_mib + rng.randint(6, 160),
        "gflop": gflop,
        "tail_gflop": gflop * rng.randint(10, 60) // 100,
    }


def _segments(rng: random.Random, count: int) -> Segments:
    """Draw a plan with a segment of one block and one of several."""
    first = rng.randint(0, 1)
    second = first + 1 + rng.randint(1, 2)
    end = rng.randint(second + 2, count)
    return [[first, first + 1], [second, end]]


def _capped(rng: random.Random, about: str, count: int, is_even: bool) -> Question:
    """Draw a chain and a cap for which segments of several blocks are needed."""
    shorter, most = (_LONG, 1.1) if about == _SMALL_FIRST else (1, 1.5)
    for _ in range(_MOST_DRAWS):
        chain = _Chain(_blocks(rng, count, is_even))
        if about == _SMALL_FIRST:
            for block in chain.blocks[: count - 6]:
                block["saved_mib"] = block["input_mib"] + rng.randint(0, 4)
        cap_mib = round(_least_peak_mib(chain) * rng.uniform(1.05, most))
        if _least_gflop(chain, cap_mib) != _least_gflop(chain, cap_mib, shorter):
            break
    return Question("plan", {"blocks": chain.blocks, "cap_mib": cap_mib}, about)


def judge(question: Question, answer: Any) -> str:
    """Price a plan, and hold it against the best one."""
    chain = _Chain(question.arguments["blocks"])
    if question.function != "plan":
        price = _peak_mib if question.function == "peak_mib" else _recomputed_gflop
        right = price(chain, question.arguments["segments"])
        return "" if answer == right else f"Returned {answer}; expected {right}."
    cap_mib = question.arguments["cap_mib"]
    try:
        peak, gflop = _peak_mib(chain, answer), _recomputed_gflop(chain, answer)
    except _BrokenRule as problem:
        return str(problem)
    enough = _least_gflop(chain, cap_mib)
    if enough is None:
        least = _least_peak_mib(chain)
        return (
            ""
            if peak == least
            else f"No plan keeps to {cap_mib} MiB. This one saves up to {peak} MiB; "
            f"{least} are enough."
        )
    if peak > cap_mib:
        return (
            f"It saves up to {peak} MiB; the cap is {cap_mib} MiB. {enough} GFLOP of "
            "recomputation are enough to keep to it."
        )
    if gflop > enough:
        return (
            f"It recomputes {gflop} GFLOP; {enough} are enough under {cap_mib} MiB. "
            f"It saves up to {peak} MiB."
        )
    return ""
