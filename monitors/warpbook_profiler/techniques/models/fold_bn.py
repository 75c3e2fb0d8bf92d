"""A batch norm in eval mode behind a convolution: its factors fit into the weights."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, rows_by
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_NORMS = (
    "aten::native_batch_norm",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
)
_WITHOUT_BIAS = ("aten::cudnn_convolution", "aten::miopen_convolution")
_CONVOLUTIONS = (
    *_WITHOUT_BIAS,
    "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d",
)
#: arguments of the norm: its running mean, and whether it takes the batch's own
_MEAN, _TRAINS = 3, 5
#: a window with more is judged by these
_MOST_NORMS = 5_000
#: of the host's time of a norm, what an addition of a bias saves
_SIMPLER = 0.6
#: passes over memory that the eager addition of a bias to each channel takes: it
#: reached 0.31 to 0.35 of the rate on an H200, about a third
_OF_BIAS = (2.9, 3.0, 3.2)


#: of the bare run, from which a person expects a gain of it
_EXPECTED = 0.1


class _Pair(NamedTuple):
    """A convolution and the norm behind it, by position."""

    convolution: int
    norm: int
    has_bias: bool


def fold_bn(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to fold norms that take no statistics into the convolutions."""
    operators, chip = evidence.operators, evidence.chip
    is_trained = operators.are_trained
    pairs = [] if is_trained else list(_pairs(operators))
    if not pairs or chip is None:
        return
    ways, time_ns, table = Ways(evidence), 0, operators.table
    gone, added, dropped = list[int](), list[int](), list[Int64s]()
    left: defaultdict[int, list[int]] = defaultdict(list)
    for pair in pairs:
        events = operators.launched_from(pair.norm, pair.norm)
        time_ns += evidence.time_ns(events)
        if pair.has_bias or not len(events):
            gone.append(pair.norm)
            continue
        # the shift becomes the bias, which torch adds in a kernel of its own
        longest = events[np.argmax(evidence.gpu.duration_ns[events])]
        left[int(table.operand[pair.norm])].append(int(longest))
        dropped.append(np.setdiff1d(events, longest))
        added.append(pair.norm)
    ways.drop_operators(np.array(gone, np.int64))
    if added:
        ways.drop(np.concatenate(dropped))
        _add_instead(operators, ways, np.array(added))
    for kind, kernels in left.items():
        called = table.operands[kind]
        moved = 2 * math.prod(called.dims[0]) * ITEM_BYTES.get(called.dtypes[0], 4)
        span = chip.pass_over(moved).times(len(kernels))
        spans = (one * ratio for one, ratio in zip(span, _OF_BIAS, strict=True))
        ways.resize(np.array(kernels), Span(*spans))
    norms = "one batch norm" if len(pairs) == 1 else f"{len(pairs):,} batch norms"
    yield Proposal(
        name="fold-bn",
        title=(
            "Fold each batch norm into the convolution before it "
            "(torch.nn.utils.fusion.fuse_conv_bn_eval)."
        ),
        evidence=(
            f"{norms[0].upper()}{norms[1:]} in eval mode follow"
            f"{'s' if len(pairs) == 1 else ''} a convolution: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        reason=(
            "A convolution without a bias gets one, which is a separate pass."
            if added
            else ""
        ),
        operator="aten::batch_norm",
        is_shown_without_gain=evidence.share(time_ns) >= _EXPECTED,
        no_gain="torch adds the bias that a convolution gets in a separate pass.",
    )


def _add_instead(operators: Operators, ways: Ways, norms: Int64s) -> None:
    """Have the host do less for these norms: it adds a bias."""
    table = operators.table
    outer = operators.outer_of(norms)
    for rows in rows_by(table.track[outer]):
        begin_ns, took_ns = table.start_ns[outer[rows]], table.duration_ns[outer[rows]]
        end_ns = begin_ns + (_SIMPLER * took_ns).astype(np.int64)
        ways.drop_host(int(table.track[outer[rows[0]]]), begin_ns, end_ns)


def _pairs(operators: Operators) -> Iterator[_Pair]:
    launching, table = operators.launching, operators.table
    is_convolution = operators.named(*_CONVOLUTIONS)
    norms = launching[operators.named(*_NORMS)[launching]]
    for norm in norms[:_MOST_NORMS].tolist():
        called = operators.operands(norm)
        is_fixed = called.scalars[_TRAINS : _TRAINS + 1] == ("False",)
        if not is_fixed or len(called.dims) <= _MEAN or not called.dims[_MEAN]:
            continue
        place = int(np.searchsorted(launching, norm))
        before = launching[max(place - 2, 0) : place][::-1].tolist()
        is_added = bool(before) and operators.name(before[0]) == "aten::add_"
        convolution = before[is_added] if len(before) > is_added else NONE
        if convolution == NONE or not is_convolution[convolution]:
            continue
        # others add the bias themselves
        has_bias = is_added or operators.name(convolution) not in _WITHOUT_BIAS
        weight = operators.operands(convolution).dims[1:2]
        channels = called.dims[0][1:2]
        is_near = table.track[convolution] == table.track[norm]
        if is_near and weight and weight[0][:1] == channels:
            yield _Pair(convolution, norm, has_bias)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("fold-bn",),
            what=(
                "batch norms in eval mode after convolutions: fold them into the "
                "weights"
            ),
            time="predicted",
        ),
    ),
    rule=fold_bn,
    untried="The model is rebuilt: --apply tries it on a copy of the model.",
    # the factors are rounded with the weights
    roundings={"fold-bn": 2**-7},
)
