"""Keys and values that are joined with each token's, so all are copied again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.fused_attentions import fused_attentions
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.growths import allocated
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_CAT = "aten::cat"
#: of one token's query with all keys
_PRODUCT = "aten::bmm"
_LEAST_TOKENS = 8
_MOST_CALLS = 50_000

Dims = tuple[int, ...]


class _Read(NamedTuple):
    """A call that reads keys which were just joined."""

    length: int
    #: the joins of keys and values right before it
    cats: list[int]


def static_cache(evidence: Evidence) -> Iterator[Proposal]:
    """Propose keys and values that are allocated once and written in place."""
    operators = evidence.operators
    grown = [reads for reads in _reads(operators) if _grows(reads)]
    # writing in place is not for what a backward pass goes through
    is_trained = operators.are_trained
    if not grown or is_trained:
        return
    ways, time_ns, calls = Ways(evidence), 0, 0
    for reads in grown:
        cats = [cat for read in reads for cat in read.cats]
        events = operators.launched_within(np.array(cats, np.int64))
        took_ns = evidence.time_ns(events)
        # each a copy of a part into its place
        parts = evidence.takes("kernel", len(events))
        least = reads[0].length
        fills = [cat for read in reads if read.length == least for cat in read.cats]
        filled = operators.launched_within(np.array(fills, np.int64))
        # what is allocated behind the prompt is filled with its keys and values
        parts = parts.plus(0.0, 0.0, evidence.time_ns(filled))
        ways.resize(events, parts.at_most(took_ns))
        # a slice to write to and one to read from instead of a join
        ways.add_host(evidence.calls.launch[events], evidence.takes("operator", 2))
        time_ns, calls = time_ns + took_ns, calls + len(cats)
    longest = max(read.length for reads in grown for read in reads)
    first = grown[0][0].cats[0]
    yield Proposal(
        name="static-cache",
        title=(
            "Allocate the cache of keys and values once, and write each token's keys "
            "and values in place."
        ),
        evidence=(
            f"Keys and values grow to {longest:,} tokens by {calls:,} calls of {_CAT}, "
            "each of which copies the whole cache: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        reason="With constant sizes, the steps could also become one CUDA graph.",
        operator=_CAT,
        line=evidence.line_at(int(operators.table.start_ns[first])),
        code=_generated(evidence.code) or allocated(evidence.code),
    )


def grows_for_attention(operators: Operators) -> bool:
    """Tell whether what grows by joins is keys and values."""
    return any(_grows(reads) for reads in _reads(operators))


def _reads(operators: Operators) -> Iterator[list[_Read]]:
    """Give the calls that read joined keys, by all sizes but the tokens' number."""
    is_cat, table = operators.named(_CAT), operators.table
    if np.count_nonzero(is_cat) < _LEAST_TOKENS:
        return
    sizes = {
        one.position: (one.query[2], one.key[2], (*one.key[:2], one.key[3]))
        for one in fused_attentions(operators)
    }
    for product in np.flatnonzero(operators.named(_PRODUCT))[:_MOST_CALLS].tolist():
        dims = operators.operands(product).dims[:2]
        if len(dims) == 2 and len(dims[0]) == len(dims[1]) == 3:
            # a batch of queries by keys whose axes are exchanged
            sizes[product] = dims[0][1], dims[1][2], (dims[0][0], dims[0][2])
    cats: defaultdict[int, list[int]] = defaultdict(list)
    found: defaultdict[tuple[int, Dims], list[_Read]] = defaultdict(list)
    joins = np.flatnonzero(is_cat)[:_MOST_CALLS].tolist()
    for position in sorted([*sizes, *joins]):
        thread = int(table.track[position])
        if is_cat[position]:
            cats[thread].append(position)
            continue
        queries, length, others = sizes[position]
        if cats[thread] and queries < length:
            joined = _longest(operators, cats[thread])
            found[thread, others].append(_Read(length, joined))
        cats[thread] = []
    yield from found.values()


def _longest(operators: Operators, cats: list[int]) -> list[int]:
    """Give the joins of keys and values: others join parts of one token."""
    times_ns = {
        cat: int(operators.gpu.duration_ns[operators.launched_from(cat, cat)].sum())
        for cat in cats
    }
    return sorted(cats, key=lambda cat: -times_ns[cat])[:2]


def _grows(reads: list[_Read]) -> bool:
    """Tell whether there are as many more keys each time."""
    lengths = list(dict.fromkeys(read.length for read in reads))
    steps = {after - before for before, after in pairwise(lengths)}
    return len(lengths) >= _LEAST_TOKENS and len(steps) == 1 and min(steps) > 0


def _generated(code: CellCode) -> str:
    """Write the cell with the static cache of a library that generates text."""
    calls = [call for call in code.calls("generate") if call.receiver]
    if not calls:
        return ""
    edit = SourceEdit(code)
    for call in calls:
        arguments = [*call.node.args, *(one.value for one in call.node.keywords)]
        names = {one.arg for one in call.node.keywords}
        if not arguments or names & {"cache_implementation", "past_key_values", None}:
            return ""
        edit.arguments(call.node, {"cache_implementation": '"static"'})
    return edit.source()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("static-cache",),
            what="keys and values of attention that grow by `cat` with each token",
            time="predicted",
        ),
    ),
    rule=static_cache,
    untried=BY_EDIT,
)
