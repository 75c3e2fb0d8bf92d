"""Every kind of change that there is, and the ones that a window gets."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.prediction import Prediction
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.allocation import allocation
from warpbook_profiler.techniques.attention import attention
from warpbook_profiler.techniques.cell_by_cell import cell_by_cell
from warpbook_profiler.techniques.contention import contention
from warpbook_profiler.techniques.debug_settings import debug_settings
from warpbook_profiler.techniques.gradients import gradients
from warpbook_profiler.techniques.growing_cat import growing_cat
from warpbook_profiler.techniques.launches import launches
from warpbook_profiler.techniques.layout import layout
from warpbook_profiler.techniques.library_chains import library_chains
from warpbook_profiler.techniques.loading import loading
from warpbook_profiler.techniques.masks import masks
from warpbook_profiler.techniques.optimizer import optimizer
from warpbook_profiler.techniques.pinning import pinning
from warpbook_profiler.techniques.pointwise import pointwise
from warpbook_profiler.techniques.printing import printing
from warpbook_profiler.techniques.products import products
from warpbook_profiler.techniques.read_back import read_back
from warpbook_profiler.techniques.round_trip import round_trip
from warpbook_profiler.techniques.row_by_row import row_by_row
from warpbook_profiler.techniques.streams import streams
from warpbook_profiler.techniques.transfers import transfers
from warpbook_profiler.techniques.waits import waits

RULES: tuple[Rule, ...] = (
    allocation,
    attention,
    cell_by_cell,
    contention,
    debug_settings,
    gradients,
    growing_cat,
    launches,
    layout,
    library_chains,
    loading,
    masks,
    optimizer,
    pinning,
    pointwise,
    printing,
    products,
    read_back,
    round_trip,
    row_by_row,
    streams,
    transfers,
    waits,
)
#: nobody tries more
MOST_CHANGES = 6
#: how much of a bound's gain counts beside a range's, which is surer
_BOUND_WEIGHT = 0.8


def advise(evidence: Evidence) -> tuple[Change, ...]:
    """Give the changes that apply, the one that gains most first."""
    changes = sorted(_found(evidence), key=lambda change: -_gain_ns(change, evidence))
    return tuple(changes[:MOST_CHANGES])


def _found(evidence: Evidence) -> Iterator[Change]:
    prediction = Prediction(evidence)
    for rule in RULES:
        for proposal in rule(evidence):
            change = prediction.of(proposal)
            if change is not None:
                yield change


def _gain_ns(change: Change, evidence: Evidence) -> float:
    bare_ns = evidence.bare_run.time_ns
    if change.low_ns is None:
        return 0.0
    if change.time_ns is None:
        return _BOUND_WEIGHT * (bare_ns - change.low_ns)
    return bare_ns - change.time_ns
