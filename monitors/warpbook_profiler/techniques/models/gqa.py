"""Heads of keys and values that are copied for each query head before attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.fused_attentions import Fused, fused_attentions
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.grouped_heads import grouped
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.techniques.gpu.attention import HALVES
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: what may be between a copy and the attention
_BEFORE = 8


class _Widened(NamedTuple):
    """One attention, and the copies that made its keys and values."""

    attention: Fused
    #: the outermost operators of them, by position
    copies: list[int]
    #: query heads for each head of the keys
    times: int


def gqa(evidence: Evidence) -> Iterator[Proposal]:
    """Propose an attention that reads each head of the keys for several queries."""
    operators = evidence.operators
    widened = list(_widened(operators))
    if not widened:
        return
    ways = Ways(evidence)
    copies = np.unique(np.array([one for some in widened for one in some.copies]))
    ways.drop_operators(copies)
    copied = operators.launched_within(copies)
    for one in widened:
        events = operators.launched_from(*(one.attention.position,) * 2)
        ways.resize(events, _attended(evidence, one, events))
    first = widened[0]
    trains = operators.are_trained
    # a source may have attentions of other heads, too
    calls = np.count_nonzero(operators.named("aten::scaled_dot_product_attention"))
    yield Proposal(
        name="gqa",
        title=(
            "Pass keys and values without repeating their heads: "
            "scaled_dot_product_attention(..., enable_gqa=True)."
        ),
        evidence=(
            f"Keys and values are copied {first.times} times before attention, which "
            f"takes {units.share(evidence.share(evidence.time_ns(copied)))} of the "
            "bare run."
        ),
        ways=ways,
        is_bound=trains,
        reason=(
            "The backward pass has less to sum; the trace does not show how much less."
            if trains
            else ""
        ),
        operator=operators.name(int(operators.outer_of(copies[:1])[0])),
        line=evidence.code.first_line("scaled_dot_product_attention")
        or evidence.line_at(int(operators.table.start_ns[first.attention.position])),
        code=grouped(evidence.code) if len(widened) == calls else "",
    )


def _attended(evidence: Evidence, one: _Widened, events: Int64s) -> Span:
    """Give what the attention takes that reads fewer keys and values."""
    took_ns = float(evidence.time_ns(events))
    if evidence.chip is None:
        return Span(took_ns, took_ns, took_ns)
    if one.attention.query[2] == 1:
        # one token's queries of a group are then rows of one product
        least_ns = evidence.chip.least_ns(2 * one.attention.key_bytes / one.times)
        return Span(min(least_ns, took_ns), took_ns / one.times, took_ns)
    # what it takes beside reading them stays
    read_ns = min(evidence.chip.least_ns(2 * one.attention.key_bytes), took_ns)
    less_ns = took_ns - read_ns * (1 - 1 / one.times)
    if read_ns <= took_ns / 2:
        return Span(less_ns, took_ns, took_ns)
    # each query head still reads its own, but all of a group the same from a cache
    cached_ns = evidence.chip.cached_ns(2 * one.attention.key_bytes)
    return Span(less_ns, min(max(less_ns, cached_ns), took_ns), took_ns)


def _widened(operators: Operators) -> Iterator[_Widened]:
    table, launching, done = operators.table, operators.launching, NONE
    of_groups = [any(len(dims) == 5 for dims in one.dims) for one in table.operands]
    grouped = launching[operators.named("aten::copy_")[launching]]
    grouped = grouped[np.array([*of_groups, False])[table.operand[grouped]]]
    for attention in fused_attentions(operators) if len(grouped) else ():
        place = int(np.searchsorted(grouped, attention.position))
        copies, times = [], 0
        for copy in grouped[max(place - _BEFORE, 0) : place].tolist():
            is_near = (
                copy > done and table.track[copy] == table.track[attention.position]
            )
            found = _times(operators, copy, attention.key) if is_near else 0
            if found:
                copies.append(int(operators.outer_of(np.array([copy]))[0]))
                times = found
        done = attention.position
        if len(copies) == 2 and attention.dtype in HALVES:
            yield _Widened(attention, copies, times)


def _times(operators: Operators, copy: int, key: tuple[int, ...]) -> int:
    """Give how many heads a copy makes of each; 0 for what makes no such keys."""
    dims = operators.operands(copy).dims[:1]
    if not dims or len(dims[0]) != 5:
        return 0
    batch, heads, times, length, size = dims[0]
    if (batch, heads * times, length, size) == key:
        return times
    # the axes of heads and tokens are exchanged later
    batch, length, heads, times, size = dims[0]
    return times if (batch, heads * times, length, size) == key else 0


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("gqa",),
            what=(
                "keys and values in half precision that are copied for each query head"
            ),
            time="predicted",
            lab="which-sdpa",
        ),
    ),
    rule=gqa,
    untried=BY_EDIT,
)
