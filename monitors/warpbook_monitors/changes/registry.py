"""Every kind of change that there is, and the ones that a window gets."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_monitors.changes.change import Change
from warpbook_monitors.changes.evidence import Evidence
from warpbook_monitors.changes.prediction import Prediction
from warpbook_monitors.changes.proposal import Rule
from warpbook_monitors.changes.rules.allocation import allocation
from warpbook_monitors.changes.rules.attention import attention
from warpbook_monitors.changes.rules.cell_by_cell import cell_by_cell
from warpbook_monitors.changes.rules.contention import contention
from warpbook_monitors.changes.rules.debug_settings import debug_settings
from warpbook_monitors.changes.rules.gradients import gradients
from warpbook_monitors.changes.rules.growing_cat import growing_cat
from warpbook_monitors.changes.rules.launches import launches
from warpbook_monitors.changes.rules.layout import layout
from warpbook_monitors.changes.rules.library_chains import library_chains
from warpbook_monitors.changes.rules.loading import loading
from warpbook_monitors.changes.rules.masks import masks
from warpbook_monitors.changes.rules.optimizer import optimizer
from warpbook_monitors.changes.rules.pinning import pinning
from warpbook_monitors.changes.rules.pointwise import pointwise
from warpbook_monitors.changes.rules.printing import printing
from warpbook_monitors.changes.rules.products import products
from warpbook_monitors.changes.rules.read_back import read_back
from warpbook_monitors.changes.rules.round_trip import round_trip
from warpbook_monitors.changes.rules.row_by_row import row_by_row
from warpbook_monitors.changes.rules.streams import streams
from warpbook_monitors.changes.rules.transfers import transfers
from warpbook_monitors.changes.rules.waits import waits

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
