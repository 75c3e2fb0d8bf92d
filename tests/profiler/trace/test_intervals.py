"""Interval arithmetic against the slow and obvious way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warpbook_profiler.events.intervals import nesting, union_ns

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=25)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = sorted(pairs, key=lambda pair: (pair[0], -pair[1]))
    start = np.array([pair[0] for pair in pairs], np.int64)
    return start, start + np.array([pair[1] for pair in pairs], np.int64)


@given(intervals)
def test_union_counts_each_covered_nanosecond_once(
    pairs: list[tuple[int, int]],
) -> None:
    covered = {at for start, length in pairs for at in range(start, start + length)}
    assert union_ns(*columns(pairs)) == len(covered)


def test_union_of_nothing_is_zero() -> None:
    assert union_ns(*columns([])) == 0


def nested(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep those pairs that nest properly with all kept before."""
    kept: list[tuple[int, int]] = []
    for start, length in pairs:
        end = start + length
        if all(
            end <= s or s + n <= start or (s <= start and end <= s + n)
            for s, n in sorted(kept)
        ) and all(not (start < s < end) or s + n <= end for s, n in kept):
            kept.append((start, length))
    return kept


@given(intervals.map(nested))
def test_self_times_of_nested_intervals_add_up_to_their_union(
    pairs: list[tuple[int, int]],
) -> None:
    start, end = columns(pairs)
    self_ns, outermost = nesting(start, end)
    assert self_ns.sum() == union_ns(start, end)
    assert (self_ns >= 0).all()
    assert union_ns(start[outermost], end[outermost]) == union_ns(start, end)


def test_a_parent_loses_its_children_but_not_its_grandchildren() -> None:
    start, end = columns([(0, 100), (10, 50), (20, 10), (70, 5)])
    self_ns, outermost = nesting(start, end)
    assert self_ns.tolist() == [45, 40, 10, 5]
    assert outermost.tolist() == [True, False, False, False]


@given(intervals)
def test_overlapping_intervals_never_give_negative_time(
    pairs: list[tuple[int, int]],
) -> None:
    self_ns, _ = nesting(*columns(pairs))
    assert (self_ns >= 0).all()
