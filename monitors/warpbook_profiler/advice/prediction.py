"""How long the bare run takes after a change: the edited program, replayed.

Three replays are compared with those of the unchanged program: the edit at its best
with the low end of the host's times, as usual with the middle, and at its worst with
the high end. Where the host decided a measured time, all three have what was solved.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.advice.words import sentence
from warpbook_profiler.model.change import Basis, Change
from warpbook_profiler.replay.estimate import SPREAD_RATIO
from warpbook_profiler.replay.simulation import HostTimes, window_ns

#: of the bare run; a smaller gain is none that one would see
_LEAST_GAIN = 0.05
#: the ends of the bare run's range differ by less where the GPU decides
_ALIKE = 0.1
#: of what varies from run to run, as a share
_LEAST_SPREAD, _MOST_SPREAD = 0.05, 0.25
_NO_GAIN = (
    "The replay shows no gain: what it takes away was not what the cell waited for."
)


class _After(NamedTuple):
    """Times after a change, in ns, and how many times as fast that is."""

    low_ns: float
    usual_ns: float
    high_ns: float
    least_speed: float
    most_speed: float


class Prediction:
    """Predicts changes of one window."""

    def __init__(self, evidence: Evidence) -> None:
        """Replay the window without a change."""
        self._evidence = evidence
        bare = evidence.bare
        self._is_measured = evidence.bare_run.basis == "measured"
        # a measured time tells of the host only where the host decided it
        ends_ns = bare.high.window_ns - bare.low.window_ns
        is_solved = self._is_measured and ends_ns > _ALIKE * bare.middle_ns
        self._times: tuple[HostTimes, HostTimes, HostTimes] = (
            (bare.middle_times,) * 3
            if is_solved
            else (bare.low_times, bare.middle_times, bare.high_times)
        )
        unchanged = (bare.middle,) * 3 if is_solved else bare.replays
        #: of a host that takes no time: what is left is the GPU's
        self._no_host = bare.low_times.scaled(0.0)
        self._before_ns = [max(replayed.window_ns, 1.0) for replayed in unchanged]

    def of(self, proposal: Proposal) -> Change | None:
        """Give the change with its time; None where it gains nothing worth a word."""
        after = None
        if proposal.ways is not None:
            after = self._after(proposal.ways, proposal.is_bound)
        basis: Basis = "unknown"
        reason = proposal.reason
        if after is not None:
            basis = "not below" if proposal.is_bound else "predicted"
            if after.most_speed < 1 / (1 - _LEAST_GAIN):
                if not proposal.is_shown_without_gain:
                    return None
                bare_ns = float(self._evidence.bare_run.time_ns)
                after = _After(bare_ns, bare_ns, bare_ns, 1.0, 1.0)
                basis, reason = "predicted", proposal.no_gain or _NO_GAIN
        is_range = basis == "predicted"
        change = Change(
            name=proposal.name,
            title=proposal.title,
            evidence=proposal.evidence,
            basis=basis,
            time_ns=round(after.usual_ns) if after and is_range else None,
            low_ns=round(after.low_ns) if after else None,
            high_ns=round(after.high_ns) if after and is_range else None,
            speed_low=after.least_speed if after and is_range else None,
            speed_high=after.most_speed if after else None,
            reason=reason,
            sentence="",
            operator=proposal.operator,
            line=proposal.line,
            sketch=proposal.sketch,
        )
        bare_run = self._evidence.bare_run
        return structs.replace(change, sentence=sentence(change, bare_run))

    def _after(self, ways: Ways, is_bound: bool) -> _After:
        bare_run = self._evidence.bare_run
        # a replay that misses a measured time may miss what it promises in proportion
        ratio = bare_run.time_ns / self._before_ns[1] if self._is_measured else 1.0
        edits = ways.edits()
        windows_ns = [
            window_ns(edit.program(), edit.times(times))
            for edit, times in zip(edits, self._times, strict=True)
        ]
        if is_bound:
            # new code of the host may take any time, and what was late need not be
            best = edits[0]
            left_ns = window_ns(best.program(stalls=False), best.times(self._no_host))
            windows_ns[0] = min(windows_ns[0], left_ns)
        speeds = [
            before_ns / max(after_ns, 1.0)
            for before_ns, after_ns in zip(self._before_ns, windows_ns, strict=True)
        ]
        spread = self._spread()
        low_ns, usual_ns, high_ns = windows_ns
        low_ns, high_ns = low_ns * min(ratio, 1.0), high_ns * max(ratio, 1.0)
        # nothing is promised that is slower than what there is
        usual_ns = min(usual_ns, bare_run.time_ns)
        return _After(
            min(low_ns * (1 - spread), usual_ns, bare_run.low_ns),
            usual_ns,
            max(min(high_ns * (1 + spread), self._most_ns), usual_ns),
            max(min(speeds), 1.0),
            max(speeds),
        )

    @property
    def _most_ns(self) -> int:
        """Give the longest time that the bare run is said to take."""
        bare_run = self._evidence.bare_run
        is_number = self._is_measured or bare_run.limit == "GPU"
        return bare_run.time_ns if is_number else bare_run.high_ns

    def _spread(self) -> float:
        """Give what varies from run to run: as measured, else as usual."""
        bare_run = self._evidence.bare_run
        if not self._is_measured or bare_run.runs < 2:
            return SPREAD_RATIO
        half = (bare_run.high_ns - bare_run.low_ns) / 2 / max(bare_run.time_ns, 1)
        return min(max(half, _LEAST_SPREAD), _MOST_SPREAD)
