"""The time that every share of a report is of, named once."""

from __future__ import annotations

from typing import NamedTuple

from warpbook_monitors.units import duration_ns
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.bare_words import span
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.model.use import CpuTime

#: of the base; a smaller difference is not seen in three digits
_ALIKE = 0.005
_OWN, _LOST = "the profiler took", "other programs took the core for"


class Base(NamedTuple):
    """What shares are of."""

    #: 0 where that is not known
    time_ns: int
    #: in a sentence; empty where that is not known
    words: str


def base_of(bare: BareRun | None, metrics: Metrics | None, cpu: CpuTime | None) -> Base:
    """Return the bare run, else the window without the profiler's own part."""
    if bare is not None:
        return Base(bare.judged_ns, _of_bare(bare))
    if cpu is not None:
        return Base(cpu.judged_ns, _of_window(cpu.judged_ns, cpu.window_ns, _LOST))
    if metrics is None:
        return Base(0, "")
    time_ns = metrics.window_ns - metrics.idle.profiler_ns
    return Base(time_ns, _of_window(time_ns, metrics.window_ns, _OWN))


def _of_bare(bare: BareRun) -> str:
    base_ns = bare.judged_ns
    whole = f"Shares are of {duration_ns(base_ns)} without the profiler"
    if bare.basis == "estimated" and bare.limit != "GPU":
        whole += f", the middle of {span(bare)}"
    elif abs(base_ns - bare.time_ns) > _ALIKE * bare.time_ns:
        whole += f", replayed; measured {duration_ns(bare.time_ns)}"
    return f"{whole}; profiled {duration_ns(bare.profiled_ns)}."


def _of_window(base_ns: int, window_ns: int, rest: str) -> str:
    if base_ns == window_ns:
        return f"Shares are of the {duration_ns(window_ns)} that were recorded."
    return (
        f"Shares are of {duration_ns(base_ns)}: {duration_ns(window_ns)} were "
        f"recorded, and {rest} {duration_ns(window_ns - base_ns)} of it."
    )
