"""A window of events, and what every reader of it needs, derived once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from warpbook_profiler.events.columns import ON_GPU, Category, Columns, Int64s, median
from warpbook_profiler.events.intervals import Coverage
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import Calls, find_calls
from warpbook_profiler.facts.idle import GapCauses, Gaps, device_gaps, host_wait_causes
from warpbook_profiler.facts.kernel_work import LimitedKernels, limited_kernels
from warpbook_profiler.facts.parts import parts_of_work
from warpbook_profiler.facts.paths import Paths
from warpbook_profiler.facts.places import Places
from warpbook_profiler.facts.queued_work import queued_work
from warpbook_profiler.facts.roofline import Called, called

#: CUPTI sets itself up in the first launch after the profiler asked for its first
#: buffer: 300 to 330 µs on an H200, where a launch takes 5
_MOST_SET_UP_NS = 400_000
_SOON_NS = 50_000
_SLOW = 5.0
#: a launch under the profiler, where there is no other to compare with
_USUAL_LAUNCH_NS = 10_000


@dataclass(frozen=True)
class Trace:
    """Events and their window; nothing of it is changed."""

    events: Columns
    run: Run

    @cached_property
    def on_gpu(self) -> Columns:
        """Return kernels, copies and memsets."""
        return self.events.only(*ON_GPU)

    @cached_property
    def kernels(self) -> Columns:
        return self.events.only(Category.KERNEL)

    @cached_property
    def operators(self) -> Columns:
        """Return operators and annotations."""
        return self.events.only(Category.OPERATOR)

    @cached_property
    def calls(self) -> Calls:
        """Return the host's calls up to the end of the code."""
        return find_calls(self.events, self.on_gpu, self.run)

    @cached_property
    def profiler_spans(self) -> tuple[Int64s, Int64s]:
        """Return when the profiler was at work within the program, sorted by start."""
        return _profiler_spans(self.events, self.calls)

    @cached_property
    def queued(self) -> Coverage:
        """Return when work was queued, or its end is not known."""
        return queued_work(self.events, self.on_gpu, self.calls)

    @cached_property
    def gaps(self) -> Gaps:
        """Return the GPU's idle time in the window."""
        return device_gaps(self.on_gpu, self.calls, self.run, self.profiler_spans)

    @cached_property
    def gap_causes(self) -> GapCauses:
        """Return what the host did while the GPU waited for it."""
        return host_wait_causes(
            self.operators, self.gaps, self.calls, self.run, self.profiler_spans
        )

    @cached_property
    def called(self) -> tuple[list[Called], Int64s]:
        """Return what called the kernels, and for each kernel its place there."""
        return called(self.events, self.kernels)

    @cached_property
    def limited(self) -> tuple[LimitedKernels, ...]:
        """Return what limits the kernels."""
        return limited_kernels(self.events, self.kernels, self.run)

    @cached_property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """Return which parts of the window work on the GPU is in, by its name."""
        return parts_of_work(self.events, self.limited)

    @cached_property
    def paths(self) -> Paths:
        """Return which operators enclose one another."""
        return Paths(self.events)

    @cached_property
    def places(self) -> Places:
        """Return where in the program the GPU was made to wait."""
        return Places(
            self.gaps, self.gap_causes, self.calls, self.run.marks, self.paths
        )


def _profiler_spans(events: Columns, calls: Calls) -> tuple[Int64s, Int64s]:
    """Give when the profiler was at work within the program, sorted by start.

    It names most of it; that the first launch is slow it does not.
    """
    own = events.only(Category.OVERHEAD)
    start_ns, end_ns = own.start_ns, own.end_ns
    # a blocking copy takes long for a reason of its own
    launches = calls.api.where(calls.launches & ~calls.blocking_copies)
    if not len(own) or not len(launches):
        return start_ns, end_ns
    first_ns = int(launches.start_ns[0])
    took_ns = int(launches.duration_ns[0])
    usual_ns = _USUAL_LAUNCH_NS
    if len(launches) > 1:
        usual_ns = int(median(launches.duration_ns[1:]))
    just_asked = (end_ns <= first_ns) & (end_ns >= first_ns - _SOON_NS)
    if not just_asked.any() or took_ns < _SLOW * usual_ns:
        return start_ns, end_ns
    set_up_ns = min(took_ns - usual_ns, _MOST_SET_UP_NS)
    starts = np.append(start_ns, first_ns)
    ends = np.append(end_ns, first_ns + set_up_ns)
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order]
