"""A mixture of experts whose experts compute one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.found_loops import FoundLoops
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import Repeat, repeats
from warpbook_profiler.advice.rewriting.modules_at_once import loops_at_once
from warpbook_profiler.advice.translation.grouped_experts import grouped
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Bools, Int64s
from warpbook_profiler.facts.traffic import ITEM_BYTES, only_passes, reduces
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_CHOOSES = "aten::nonzero"
#: rows of a tensor are no modules
_SELECT = "aten::select"
_PRODUCTS = ("aten::mm", "aten::addmm")
#: the same input gives something else each time
_DRAWS = ("aten::native_dropout", "aten::bernoulli_", "aten::normal_", "aten::uniform_")
#: what gives an expert's results to their tokens
_GIVES = (
    "aten::index_put_",
    "aten::index_add_",
    "aten::index_add",
    "aten::scatter_add_",
    "aten::index_copy_",
    "aten::add_",
)
_LEAST_EXPERTS = 4
_MOST_PRODUCTS = 20_000
#: of the host, in operators: to sort tokens by their expert and to count them
_SORT = (4.0, 10.0, 33.0)
#: operators of one turn, and those between its last product and what gives it back
_MOST_OPERATORS, _MOST_BEHIND = 400, 8

#: gives each token its expert
_BEST = ("aten::max", "aten::argmax")
#: dtype of a grouped product, and what sizes of weights are a multiple of
_GROUPED, _TILE = "c10::BFloat16", 8

Dims = tuple[int, ...]


class _Turn(NamedTuple):
    """What one expert does: its outermost operators, and its products."""

    operators: Int64s
    products: list[int]


def experts_at_once(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one product for all experts of a layer."""
    yield from _of_tokens(evidence)
    yield from _of_all(evidence)


def _of_all(evidence: Evidence) -> Iterator[Proposal]:
    """Propose it for modules that a loop calls on the same input."""
    operators, chip = evidence.operators, evidence.chip
    if chip is None or operators.are_trained:
        return
    in_sight: FoundLoops | None = None
    ways, events, most = Ways(evidence), np.zeros(0, np.int64), 0
    multiplies = operators.named("aten::linear", *_PRODUCTS)
    are_modules = multiplies.copy()
    # also by `@`
    inner = np.flatnonzero(operators.named(*_PRODUCTS))
    multiplies[operators.outer_of(inner)] = True
    # 1 multiplies, and more selects
    acts = multiplies + 2 * operators.named(_SELECT)
    draws = operators.named(*_DRAWS)
    for repeat in repeats(operators, _LEAST_EXPERTS):
        if max(acts[repeat.one].tolist()) != 1:
            continue
        in_sight = in_sight or FoundLoops(evidence, loops_at_once)
        if not in_sight.hold(repeat) and not (
            are_modules[repeat.one].any() and _share_input(operators, repeat.one, draws)
        ):
            continue
        length = _length(operators, repeat)
        first, rest = np.split(repeat.operators, [length])
        turns = len(repeat.operators) // length
        products = first[multiplies[first]]
        if turns < _LEAST_EXPERTS:
            continue
        others = rest[: length * (turns - 1)]
        ways.drop_operators(others)
        ends_ns = operators.table.end_ns
        spans_ns = ends_ns[first[-1:]], ends_ns[others[-1:]]
        ways.drop_host(repeat.thread, *spans_ns, in_worst=True)
        kept = operators.launched_within(first)
        for one in first.tolist():
            mine = operators.launched_from(one, one)
            work = int(operators.direct[mine[0]]) if len(mine) else one
            sizes = [dims for dims in operators.operands(work).dims if len(dims) > 1]
            kind = _dtype(operators, work)
            moved = 2.0 * ITEM_BYTES.get(kind, 4) * turns
            moved *= max(map(math.prod, sizes), default=0)
            span = chip.pass_over(moved)
            if one in products and len(sizes) > 1:
                flops = 2.0 * math.prod(sizes[0]) * sizes[1][-1] * turns
                span = chip.multiply(flops, kind, moved) or span
            took_ns = turns * float(evidence.time_ns(mine))
            ways.resize(mine, span.at_most(took_ns))
        # weights and biases are stacked, at best before
        count = 4.0 * len(products)
        stacks = evidence.takes("operator").each(0.0, count, count)
        ways.add_host(evidence.calls.launch[kept[:1]], stacks)
        events = np.concatenate([events, operators.launched_within(repeat.operators)])
        most = max(most, turns)
    if not len(events):
        return
    begin = int(operators.outer[events[0]])
    yield Proposal(
        name="experts-at-once",
        title="Stack the modules' weights, and multiply all by batched products.",
        evidence=(
            f"{most:,} modules with the same layers run one after the other on the "
            f"same input: {len(events):,} kernels, "
            f"{units.share(evidence.share(evidence.time_ns(events)))} of the bare run."
        ),
        ways=ways,
        operator=operators.name(begin),
        line=evidence.line_at(int(operators.table.start_ns[begin])),
    )


def _share_input(operators: Operators, turn: Int64s, draws: Bools) -> bool:
    """Tell whether all turns take what was made just before the first of them.

    What one of them gives has other sizes, so that it is no input of the next one.
    """
    table, launching = operators.table, operators.launching
    last_ns = table.start_ns[turn[-1]] + table.duration_ns[turn[-1]]
    until = np.searchsorted(table.start_ns, last_ns)
    begin, end = np.searchsorted(launching, [turn[0], until])
    first, last = int(launching[begin]), int(launching[end - 1])
    if not begin or draws[turn[0] : until].any():
        return False
    if operators.name(first) not in _PRODUCTS:
        return False
    made = _made(operators, int(launching[begin - 1]))
    taken, given = _sizes(operators, first)[0], _made(operators, last)
    return made == taken and given not in (None, taken)


def _made(operators: Operators, position: int) -> Dims | None:
    """Give rows and columns of what an operator makes; None where it may be any."""
    name = operators.name(position)
    if name in _PRODUCTS:
        rows, columns = _sizes(operators, position)
        return rows[0], columns[1]
    if not only_passes(name) or reduces(name):
        return None
    dims = max(operators.operands(position).dims, key=math.prod, default=())
    return (math.prod(dims[:-1]), dims[-1]) if dims else None


def _length(operators: Operators, repeat: Repeat) -> int:
    """Give after how many operators the same ones come with the same operands."""
    table = operators.table
    kinds = [
        (int(table.name[at]), *_operands_of(operators, at))
        for at in repeat.operators.tolist()
    ]
    for length in range(repeat.length, len(kinds) // 2 + 1, repeat.length):
        if kinds[length:] == kinds[:-length]:
            return length
    return len(kinds)


def _operands_of(operators: Operators, outer: int) -> list[int]:
    """Give with which operands an operator, or those within, launched their work."""
    direct = operators.direct[operators.launched_from(outer, outer)]
    return [int(one) for one in operators.table.operand[direct]]


def _of_tokens(evidence: Evidence) -> Iterator[Proposal]:
    """Propose it for experts each of which has tokens of its own."""
    operators, chip = evidence.operators, evidence.chip
    layers = list(_layers(operators))
    if chip is None or not layers:
        return
    ways, kernels = Ways(evidence), np.zeros(0, np.int64)
    ends_ns = operators.table.end_ns
    for turns in layers:
        first = turns[0]
        rest = np.concatenate([turn.operators for turn in turns[1:]])
        kept = operators.launched_within(first.operators)
        # one sort chooses the tokens of all, and waits for no number of them
        inside = operators.within(first.operators)
        chooses = np.flatnonzero(inside & operators.named(_CHOOSES))
        ways.drop_operators(chooses)
        kernels = np.concatenate([kernels, kept, operators.launched_within(rest)])
        ways.drop(operators.launched_within(rest))
        thread = int(operators.table.track[rest[0]])
        begin_ns, end_ns = ends_ns[first.operators[-1:]], ends_ns[rest[-1:]]
        ways.drop_host(thread, begin_ns, end_ns, in_worst=True)
        products = np.zeros(0, np.int64)
        for place, product in enumerate(first.products):
            span = _product(evidence, [turn.products[place] for turn in turns])
            if span is None:
                return
            events = operators.launched_from(product, product)
            products = np.append(products, events)
            ways.resize(events, span)
        # the rest passes over all tokens instead of over one expert's
        (rows, depth), (_, width) = _sizes(operators, first.products[0])
        rows = sum(_sizes(operators, turn.products[0])[0][0] for turn in turns)
        others = np.setdiff1d(kept, products)
        others = np.setdiff1d(others, operators.launched_within(chooses))
        item_bytes = ITEM_BYTES[_dtype(operators, first.products[0])]
        one_pass = chip.pass_over(2.0 * item_bytes * rows * max(depth, width))
        ways.resize(others, one_pass.times(len(others)))
        sort = evidence.takes("operator").each(*_SORT)
        ways.add_host(evidence.calls.launch[kept[:1]], sort)
    experts = max(len(turns) for turns in layers)
    yield Proposal(
        name="experts-at-once",
        title=(
            "Sort tokens by their expert and multiply all at once: "
            "torch.nn.functional.grouped_mm, or bmm where each takes equally many."
        ),
        evidence=(
            f"{experts:,} experts run one after the other, each after a wait for its "
            f"number of tokens: {len(kernels):,} kernels, "
            f"{units.share(evidence.share(evidence.time_ns(kernels)))} of the bare run."
        ),
        ways=ways,
        operator=operators.name(layers[0][0].products[0]),
        line=evidence.line_at(int(operators.table.start_ns[layers[0][0].operators[0]])),
        code=grouped(evidence.code) if _can_be_grouped(operators, layers) else "",
    )


def _can_be_grouped(operators: Operators, layers: list[list[_Turn]]) -> bool:
    """Tell whether each token has one of these experts, in bfloat16, and none is left.

    Sizes have to be those that torch's grouped product takes.
    """
    chosen = operators.named(*_BEST)
    widths = {
        operators.operands(at).dims[0][-1:]
        for at in np.flatnonzero(chosen).tolist()
        if operators.operands(at).dims
    }
    products = [one for turns in layers for turn in turns for one in turn.products]
    masks = np.flatnonzero(operators.named(_CHOOSES)).tolist()
    return (
        operators.takes_rows
        and widths == {(len(turns),) for turns in layers}
        and all(len(operators.operands(one).dims[0]) == 1 for one in masks)
        and all(_dtype(operators, one) == _GROUPED for one in products)
        and all(
            size % _TILE == 0 for one in products for size in _sizes(operators, one)[1]
        )
    )


def _product(evidence: Evidence, products: list[int]) -> Span | None:
    """Give how long one kernel takes that multiplies what these do."""
    operators, chip = evidence.operators, evidence.chip
    flops, moved = 0.0, 0.0
    kind = _dtype(operators, products[0])
    for one in products:
        (rows, depth), (_, width) = _sizes(operators, one)
        flops += 2.0 * rows * depth * width
        moved += rows * depth + depth * width + rows * width
    if chip is None or not kind:
        return None
    return chip.multiply(flops, kind, moved * ITEM_BYTES[kind])


def _dtype(operators: Operators, product: int) -> str:
    """Return the dtype of what a product takes; empty where it is not recorded."""
    dtypes = operators.operands(product).dtypes
    return next((dtype for dtype in dtypes if dtype in ITEM_BYTES), "")


def _layers(operators: Operators) -> Iterator[list[_Turn]]:
    """Give the turns of loops over experts: who chooses tokens, and then multiplies."""
    chooses = operators.outer_of(np.flatnonzero(operators.named(_CHOOSES)))
    if len(chooses) < _LEAST_EXPERTS:
        return
    products = np.flatnonzero(operators.named(*_PRODUCTS))[:_MOST_PRODUCTS]
    marks = np.union1d(chooses, products)
    is_product = np.isin(marks, products)
    # a turn begins where tokens are chosen after a product
    begins = np.flatnonzero(~is_product & np.append(True, is_product[:-1]))
    layer, last = list[_Turn](), tuple[Dims, ...]()
    for part in np.split(marks, begins)[1:]:
        turn = _turn(operators, part, products)
        weights = tuple(_sizes(operators, one)[1] for one in turn.products)
        if layer and weights[: len(last)] == last:
            # after the last expert the model goes on with other products
            layer.append(turn._replace(products=turn.products[: len(last)]))
            continue
        if len(layer) >= _LEAST_EXPERTS:
            yield layer
        layer, last = [turn], weights
    if len(layer) >= _LEAST_EXPERTS:
        yield layer


def _turn(operators: Operators, marks: Int64s, products: Int64s) -> _Turn:
    """Give the operators from a choice of tokens to where results are given back."""
    table = operators.table
    mine = np.intersect1d(marks, products)
    begin = int(marks[0])
    until = int(table.end_ns[mine[-1]]) if len(mine) else int(table.end_ns[begin])
    thread = table.track[begin]
    tops = begin + np.flatnonzero(
        operators.outermost[begin : begin + _MOST_OPERATORS]
        & (table.track[begin : begin + _MOST_OPERATORS] == thread)
    )
    after = tops[table.start_ns[tops] >= until][:_MOST_BEHIND]
    gives = after[operators.named(*_GIVES)[after]]
    end = int(gives[0]) if len(gives) else int(tops[table.start_ns[tops] <= until][-1])
    return _Turn(tops[tops <= end], mine.tolist())


def _sizes(operators: Operators, product: int) -> tuple[Dims, Dims]:
    """Give the sizes of what a product takes: tokens, and an expert's weights."""
    dims = [sizes for sizes in operators.operands(product).dims if len(sizes) == 2]
    return (dims[-2], dims[-1]) if len(dims) > 1 else ((0, 0), (0, 0))


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("experts-at-once",),
            what=(
                "experts of a mixture, or modules with the same layers on one input, "
                "that run one after the other"
            ),
            time="predicted",
        ),
    ),
    rule=experts_at_once,
    untried=BY_EDIT,
)
