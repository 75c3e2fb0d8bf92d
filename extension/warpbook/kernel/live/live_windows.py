"""The windows of a long cell: the list that is told, and the verdict over all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from warpbook.kernel.runs.recording import RunRecord
from warpbook_monitors import units
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.figures import CellVerdict, Finding
from warpbook_profiler.model.live import LiveWindow
from warpbook_profiler.verdict.leading_cause import in_words, leading

#: a list beyond this has its older half merged in pairs
_MOST_WINDOWS = 60


@dataclass(frozen=True)
class WindowProfile:
    """What one window gave."""

    figures: CellProfile
    recorded: RunRecord


@dataclass
class _Cause:
    """One kind over all windows."""

    explains_ns: int
    #: the window that shows it best
    finding: Finding
    at_ns: int


class Windows:
    """Takes the windows one by one; what is shown may be read by any thread."""

    def __init__(self) -> None:
        self.shown: tuple[LiveWindow, ...] = ()
        self.newest: WindowProfile | None = None
        self.verdict: CellVerdict | None = None
        self._by_verdict: dict[Kind, WindowProfile] = {}
        self._causes: dict[Kind, _Cause] = {}
        self._judged = 0
        self._judged_ns = 0

    def add(self, window: LiveWindow, profiled: WindowProfile) -> None:
        self.newest = profiled
        self.shown = _bounded((*self.shown, window))
        verdict, metrics = profiled.figures.verdict, profiled.figures.metrics
        if verdict is None:
            return
        self._by_verdict[verdict.kind] = profiled
        if verdict.kind != "unknown" and metrics is not None:
            self._judged += 1
            bare = profiled.figures.bare
            recorded_ns = metrics.window_ns - metrics.idle.profiler_ns
            self._judged_ns += recorded_ns if bare is None else bare.judged_ns
            for finding in profiled.figures.findings:
                self._weigh(finding, window.start_ns)
        self.verdict = self._judge(verdict)

    @property
    def typical(self) -> WindowProfile | None:
        """Give the newest window whose verdict is that over all; else the newest."""
        if self.verdict is None:
            return self.newest
        return self._by_verdict.get(self.verdict.kind, self.newest)

    def _weigh(self, finding: Finding, at_ns: int) -> None:
        cause = self._causes.setdefault(finding.kind, _Cause(0, finding, at_ns))
        cause.explains_ns += finding.explains_ns
        if finding.share > cause.finding.share:
            cause.finding, cause.at_ns = finding, at_ns

    def _judge(self, newest: CellVerdict) -> CellVerdict:
        """As one window is judged, with the time that each cause took in all."""
        if not self._judged_ns:
            return newest
        shares = {
            kind: cause.explains_ns / self._judged_ns
            for kind, cause in self._causes.items()
        }
        over = f"Over {self._judged} window{'s' if self._judged > 1 else ''}"
        kind = leading(shares)
        if kind == "mixed":
            named = in_words(shares) or "none was found"
            return CellVerdict("mixed", f"{over} no one cause leads: {named}.")
        cause = self._causes[kind]
        return CellVerdict(
            kind,
            f"{over} {units.share(shares[kind])} of the time is {kind}, the most in "
            f"the one after {units.duration_ns(cause.at_ns)}: {cause.finding.evidence} "
            f"{cause.finding.change}",
        )


def _bounded(windows: Sequence[LiveWindow]) -> tuple[LiveWindow, ...]:
    if len(windows) <= _MOST_WINDOWS:
        return tuple(windows)
    half = _MOST_WINDOWS // 2
    pairs = zip(windows[:half:2], windows[1:half:2], strict=True)
    return (*(_merged(*pair) for pair in pairs), *windows[half:])


def _merged(one: LiveWindow, other: LiveWindow) -> LiveWindow:
    """Add two neighbours up; what is in words is that of the longer."""
    longer = max(one, other, key=lambda window: window.recorded_ns)
    known = [
        window.bare_step_ns
        for window in (one, other)
        if window.bare_step_ns is not None
    ]
    busy_ns = None
    if one.gpu_busy_ns is not None and other.gpu_busy_ns is not None:
        busy_ns = one.gpu_busy_ns + other.gpu_busy_ns
    return msgspec.structs.replace(
        longer,
        start_ns=one.start_ns,
        end_ns=other.end_ns,
        steps=one.steps + other.steps,
        recorded_ns=one.recorded_ns + other.recorded_ns,
        bare_step_ns=round(sum(known) / len(known)) if known else None,
        gpu_busy_ns=busy_ns,
        launches=one.launches + other.launches,
        matched=one.matched + other.matched,
        overhead_ns=one.overhead_ns + other.overhead_ns,
        merged=one.merged + other.merged,
    )
