"""A window of events, and what every reader of it needs, derived once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from warpbook_profiler.events.columns import ON_GPU, Category, Columns, Int64s
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.artefacts import profilers_spans
from warpbook_profiler.facts.calls import Calls, find_calls
from warpbook_profiler.facts.idle import GapCauses, Gaps, device_gaps, host_wait_causes
from warpbook_profiler.facts.paths import Paths
from warpbook_profiler.facts.places import Places


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
        return profilers_spans(self.events, self.calls)

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
    def paths(self) -> Paths:
        """Return which operators enclose one another."""
        return Paths(self.events)

    @cached_property
    def places(self) -> Places:
        """Return where in the program the GPU was made to wait."""
        return Places(
            self.gaps, self.gap_causes, self.calls, self.run.marks, self.paths
        )
