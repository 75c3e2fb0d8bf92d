"""A text that is read again from its beginning for each token that is written."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.fused_attentions import fused_attentions
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.gpu.attention import attentions, is_masked
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_CAT = "aten::cat"
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
#: what chooses a token
_CHOICES = (
    "aten::argmax",
    "aten::multinomial",
    "aten::topk",
    "aten::max",
    "aten::sort",
)
_LEAST_TOKENS, _MOST_STEP = 4, 8
#: times as long as at the ceiling, what bytes that are read once take in all
_READ = Span(1.1, 1.3, 2.0)


class _Token(NamedTuple):
    """One pass over the text."""

    length: int
    #: the first operator of it, by position
    begin: int


def use_cache(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to keep keys and values of what was read."""
    operators, chip = evidence.operators, evidence.chip
    tokens = _tokens(operators)
    if chip is None or len(tokens) < _LEAST_TOKENS:
        return
    # the first pass stays, as whole as it is
    direct = operators.direct
    again = np.flatnonzero(direct >= tokens[1].begin)
    again = again[evidence.is_kernel[again]]
    begins = np.array([token.begin for token in tokens])
    lengths = np.array([token.length for token in tokens])
    place = np.searchsorted(begins, direct[again], side="right") - 1
    took_ns = evidence.gpu.duration_ns[again]
    part_ns = np.maximum(took_ns / lengths[place], evidence.takes("kernel").usual_ns)
    read_bytes = _read_bytes(operators)[direct[again]]
    read_ns = chip.least_ns(1.0) * read_bytes
    ways = Ways(evidence)
    spans = [np.minimum(np.maximum(part_ns, read_ns * one), took_ns) for one in _READ]
    ways.resize(again, Span(*(float(one.sum()) for one in spans)))
    yield Proposal(
        name="use-cache",
        title=(
            "Cache the keys and values of earlier tokens: compute only the last token."
        ),
        evidence=(
            f"Attention reads {lengths[0]:,} to {lengths[-1]:,} tokens, more each "
            f"time, and each of {len(tokens):,} passes computes all of them: the later "
            f"passes take {units.share(evidence.share(int(took_ns.sum())))} of the "
            "bare run."
        ),
        ways=ways,
        operator="aten::scaled_dot_product_attention",
        line=evidence.line_at(int(operators.table.start_ns[tokens[1].begin])),
        code=_cached(evidence.code),
    )


def _tokens(operators: Operators) -> list[_Token]:
    """Give the passes over a text that grows by what the one before it chose."""
    is_choice, is_cat = operators.named(*_CHOICES), operators.named(_CAT)
    found = _lengths(operators) if is_choice.any() and is_cat.any() else []
    if not found:
        return []
    tokens = [_Token(found[0][1], 0)]
    for (before, length), (position, longer) in pairwise(found):
        if longer == length:
            continue
        chosen = np.flatnonzero(is_choice[before:position])
        joined = np.flatnonzero(is_cat[before:position])
        if not 0 < longer - length <= _MOST_STEP or not len(chosen) or not len(joined):
            return []
        tokens.append(_Token(longer, before + int(joined[-1]) + 1))
    return tokens


def _lengths(operators: Operators) -> list[tuple[int, int]]:
    """Give attentions that read as many tokens as they give, and leave later ones out.

    Returns:
        nothing where there are others.
    """
    found = []
    for call in fused_attentions(operators):
        if call.query[2] != call.key[2] or not call.is_masked:
            return []
        found.append((call.position, call.key[2]))
    if found:
        return found
    for one in attentions(operators):
        if one.scores[-1] != one.scores[-2] or not is_masked(operators, one):
            return []
        found.append((one.members[0], one.scores[-1]))
    return found


def _read_bytes(
    operators: Operators,
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Give for each operator what it reads of weights, or of keys and values."""
    table = operators.table
    by_operand = np.zeros(len(table.operands) + 1)
    for at, called in enumerate(table.operands):
        sizes = [
            math.prod(dims) * ITEM_BYTES.get(kind, 4)
            for dims, kind in zip(called.dims, called.dtypes, strict=False)
            if len(dims) > 1
        ]
        by_operand[at] = sizes[-1] if sizes else 0
    reads = operators.named(*_PRODUCTS)
    return np.append(np.where(reads, by_operand[table.operand], 0.0), 0.0)


def _cached(code: CellCode) -> str:
    """Write the cell without an option that turns the cache off."""
    edit, is_changed = SourceEdit(code), False
    for call in code.calls("generate"):
        for option in call.node.keywords:
            if option.arg == "use_cache" and ast.unparse(option.value) == "False":
                edit.replace(option.value, "True")
                is_changed = True
    return edit.source() if is_changed else ""


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("use-cache",),
            what="a whole sequence that is recomputed for each token",
            time="predicted",
        ),
    ),
    rule=use_cache,
    untried=BY_EDIT,
)
