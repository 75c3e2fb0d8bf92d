"""Memory of the host that is pinned, or copied to pinned memory, again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.pinned_memory import pinned_before
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.facts.calls import named
from warpbook_profiler.techniques.host.transfers import PINNED_INPUT
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_PINS = re.compile(r"(cuda|hip)(HostAlloc|MallocHost|HostMalloc|HostRegister)")
_OPERATOR = "aten::pin_memory"
#: of the profiled run, below which nobody looks for it
_LEAST_SHARE = 0.03
_TO_GPU = re.compile(r"Memcpy HtoD \(Pinned")


def pinning(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to pin memory once, before the loop."""
    api, operators = evidence.calls.api, evidence.operators
    table = operators.table
    inside = api.start_ns >= evidence.run.start_ns
    pins = np.flatnonzero(inside & named(api, _PINS))
    copies = np.flatnonzero(operators.named(_OPERATOR) & operators.outermost)
    call = next(iter(evidence.code.calls("pin_memory", in_loop=True)), None)
    # pinning takes part of such an operator's time, where it is called at all
    in_operators = call is not None and len(copies) > 1
    spans = (
        (table.start_ns[copies], table.end_ns[copies])
        if in_operators
        else (api.start_ns[pins], api.end_ns[pins])
    )
    time_ns = int((spans[1] - spans[0]).sum())
    if not time_ns or time_ns < _LEAST_SHARE * evidence.bare_run.profiled_ns:
        return
    ways = Ways(evidence)
    if in_operators:
        ways.drop_operators(copies)
        _undisturbed(evidence, ways)
        what = f"pin_memory() is called {len(copies):,} times, and copies each time"
    else:
        ways.drop_calls(pins)
        names = sorted({api.names[at] for at in api.name[pins].tolist()})
        what = f"Host memory is pinned {len(pins):,} times by {' and '.join(names[:3])}"
    yield Proposal(
        name="pin-once",
        title="Allocate pinned memory once and reuse it.",
        evidence=f"{what}: {duration_ns(time_ns)} of the host's time.",
        ways=ways,
        is_bound=in_operators,
        reason=(
            "Data that changes must still be copied to pinned memory; that can overlap "
            "with the GPU's work."
            if in_operators
            else ""
        ),
        operator=_OPERATOR if in_operators else None,
        line=call.line if call else evidence.line_at(int(spans[0][0])),
        code=pinned_before(evidence, evidence.code.calls("pin_memory"))
        if in_operators
        else "",
    )


def _undisturbed(evidence: Evidence, ways: Ways) -> None:
    """Let copies go at their link's rate: the host's own go through memory no more."""
    gpu, chip = evidence.gpu, evidence.chip
    events = np.flatnonzero(named(gpu, _TO_GPU) & (gpu.size_bytes > 0))
    if chip is None or not len(events):
        return
    size_bytes = int(gpu.size_bytes[events].sum())
    span = chip.copy(size_bytes, "to_gpu", calls=len(events))
    if span is not None:
        ways.resize(events, span.at_most(evidence.time_ns(events)))


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("pin-once",),
            what=(
                "pinned memory that is allocated each time, or `pin_memory()` called "
                "each time"
            ),
            time="predicted; for `pin_memory()` in a loop a bound",
            answers=PINNED_INPUT,
        ),
    ),
    rule=pinning,
    untried="Only you know where the memory can be kept between iterations.",
)
