"""How long the bare run takes after a change: the edited program, replayed.

Three replays are compared with those of the unchanged program: the edit at its best
with the low end of the host's times, as usual with the middle, and at its worst with
the high end. Where the host decided a measured time, the last two have what was solved.
Where the host decides afterwards, what is left of its time is a guess: the change has a
range, and no number; so it has where its first calls show that the GPU's work hid. The
edit also tells which parts of the window it makes shorter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from msgspec import structs

from warpbook_profiler.advice.code.source_edit import changed_lines
from warpbook_profiler.advice.edits import Edit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.advice.words import sentence
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.model.change import LEAST_GAIN, Basis, Change
from warpbook_profiler.model.figures import BETWEEN, LAUNCHING, OTHER_WORK, WAITS
from warpbook_profiler.replay.estimate import SPREAD_RATIO
from warpbook_profiler.replay.host import Floats
from warpbook_profiler.replay.simulation import HostTimes, window_ns

#: from which a prediction is of use: no bound comes before it, and results may be
#: less exact for it
_OF_USE = 0.1
#: what a change may gain where the host decides, from which it is named even if it
#: gains nothing with the host's usual times
_HOPED = 0.25
#: of its gain, what else gains as much comes before what makes results less exact
_ROUNDED = 0.8
#: times as long as with a host that takes no time: the host decides; and a range that
#: is no wider is as good as a number
_NEAR = 1.25
#: a bound that is shorter says no more than that
_NEARLY_NOTHING_NS = 20_000.0
#: the ends of the bare run's range differ by less where the GPU decides
_ALIKE = 0.1
#: of what the host takes the first time, what it takes at least when it comes again
_WARM = 0.7
#: what a cell takes longer by itself than in a loop, about: its first calls are slow
_ALONE_NS = 700_000.0
#: of that, what the GPU's longer work hides, and what is taken for other calls' time
_HIDDEN, _SPREAD_OUT = 0.2, 0.7
#: of what is as short that is no number's error any more, and nothing comes twice
_COLD_NS = _ALONE_NS / (_NEAR - 1)
#: of what varies from run to run, as a share
_LEAST_SPREAD, _MOST_SPREAD = 0.05, 0.25
#: times as long or as short: so far off are ends where nobody looked before
_UNSEEN = 1.25
#: what the host does for so long is no launching, which may be faster elsewhere
_PAUSE_NS = 300_000.0
_NO_GAIN = (
    "The replay shows no gain: the cell did not wait for what the change removes."
)

#: of the window; who makes less of a part shorter does not act on it
_LEAST_SHARE = 0.01
_MOST_NAMES = 8


class _After(NamedTuple):
    """Times after a change, in ns, and how many times as fast that is."""

    low_ns: float
    usual_ns: float
    high_ns: float
    least_speed: float
    most_speed: float
    #: as the replay has it, so comparable with nothing that was measured
    usual_speed: float
    #: what decides is not known: a range, and no number
    is_range: bool
    #: with the host's usual times it gains nothing, and much with the least
    is_hoped: bool = False


class _Shortened(NamedTuple):
    """Parts of the window, and names of work on the GPU, the longest first."""

    parts: tuple[str, ...]
    slices: tuple[str, ...]


class Advice(NamedTuple):
    """A change, and its place in the report: lower ones come first."""

    change: Change
    #: 0 for a prediction of use, 1 for all else; and the gain as a share, negative
    place: tuple[int, float]
    #: see `Proposal`
    rounds: bool = False


class Prediction:
    """Predicts changes of one window."""

    def __init__(self, evidence: Evidence) -> None:
        """Replay the window without a change."""
        self._evidence = evidence
        bare = evidence.bare
        self._is_measured = evidence.bare_run.basis == "measured"
        self._times: tuple[HostTimes, HostTimes, HostTimes] = (
            bare.low_times,
            bare.middle_times,
            bare.high_times,
        )
        unchanged = bare.replays
        # a measured time tells of the host only where the host decided it; and how long
        # all of it took, not what of it: at best what stays takes as little as it may
        ends_ns = bare.high.window_ns - bare.low.window_ns
        if self._is_measured and ends_ns > _ALIKE * bare.middle_ns:
            self._times = (bare.low_times, bare.middle_times, bare.middle_times)
            unchanged = (bare.low, bare.middle, bare.middle)
        #: of a host that takes next to no time: what is left is the GPU's
        self._no_host = replace(
            bare.low_times.scaled(0.0),
            cost_ns=np.minimum(bare.low_times.cost_ns, evidence.takes("launch").low_ns),
        )
        #: of one that does the same again, as in a loop
        self._warm = bare.low_times.scaled(_WARM)
        self._before_ns = [max(replayed.window_ns, 1.0) for replayed in unchanged]

    def of(self, proposal: Proposal) -> Advice | None:
        """Give the change with its time; None where it gains nothing worth a word."""
        after = None
        if proposal.ways is not None:
            after = self._after(proposal.ways, proposal.is_bound, proposal.depends_on)
        basis: Basis = "unknown"
        reason, place = proposal.reason, (1, 0.0)
        if after is not None:
            basis = "not below" if proposal.is_bound else "predicted"
            speed = after.most_speed if proposal.is_bound else after.usual_speed
            gain = 1 - 1 / speed
            is_hoped = after.is_hoped and not proposal.rounds
            is_lossy = proposal.rounds and not proposal.is_shown_without_gain
            if gain < (_OF_USE if is_lossy else LEAST_GAIN) and not is_hoped:
                if not proposal.is_shown_without_gain:
                    return None
                after = self._unchanged
                basis, reason = "predicted", proposal.no_gain or _NO_GAIN
            is_of_use = basis == "predicted" and gain >= _OF_USE
            place = (
                0 if is_of_use else 1,
                -gain * (_ROUNDED if proposal.rounds else 1),
            )
            if basis == "not below" and after.low_ns < _NEARLY_NOTHING_NS:
                after, basis = None, "unknown"
        is_told = basis == "predicted"
        concerns = _Shortened((), ())
        if proposal.ways is not None:
            concerns = _shortened(self._evidence, proposal.ways.usual)
        elif proposal.events is not None:
            concerns = _about(self._evidence, proposal.events)
        change = Change(
            name=proposal.name,
            title=proposal.title,
            evidence=proposal.evidence,
            basis=basis,
            time_ns=round(after.usual_ns)
            if after and is_told and not after.is_range
            else None,
            low_ns=round(after.low_ns) if after else None,
            high_ns=round(after.high_ns) if after and is_told else None,
            speed_low=after.least_speed if after and is_told else None,
            speed_high=after.most_speed if after else None,
            reason=reason,
            sentence="",
            operator=proposal.operator,
            line=proposal.line,
            code=proposal.code,
            diff=changed_lines(self._evidence.run.source, proposal.code),
            parts=concerns.parts,
            slices=concerns.slices,
        )
        bare_run = self._evidence.bare_run
        words = sentence(change, bare_run, proposal.depends_on)
        told = structs.replace(change, sentence=words)
        return Advice(told, place, proposal.rounds)

    def _after(self, ways: Ways, is_bound: bool, depends_on: str = "") -> _After:
        bare_run = self._evidence.bare_run
        # a replay that misses a measured time may miss what it promises in proportion
        ratio = bare_run.time_ns / self._before_ns[1] if self._is_measured else 1.0
        edits = ways.edits()

        def replayed_ns(at: int) -> float:
            return window_ns(edits[at].program(), edits[at].times(self._times[at]))

        usual_ns = replayed_ns(1)
        windows_ns = [min(replayed_ns(0), usual_ns), usual_ns, replayed_ns(2)]
        best, usual, _ = (
            1 - max(after_ns, 1.0) / before_ns
            for before_ns, after_ns in zip(self._before_ns, windows_ns, strict=True)
        )
        is_none = not is_bound and usual < LEAST_GAIN
        if is_none and best < _HOPED:
            return self._unchanged
        # what else the host does stays, so that there is no use in what it may not take
        if is_bound and max(best, usual) < LEAST_GAIN:
            return self._unchanged
        # new code of the host may take any time, and what was late need not be
        edit = edits[0] if is_bound else edits[1]
        left_ns = window_ns(edit.program(stalls=False), edit.times(self._no_host))
        is_by_host = windows_ns[1] > _NEAR * left_ns
        if is_bound:
            # no cell is shorter than a launch, a kernel, and the way back
            least_ns = self._evidence.takes("round_trip").low_ns
            windows_ns[0] = max(min(windows_ns[0], left_ns), least_ns)
        elif is_by_host:
            # when profiled the way to the first call and from the last takes long
            warm_ns = windows_ns[0] - self._cold_ns(edits[0])
            if windows_ns[0] < _COLD_NS:
                # and each call comes for the first time
                warm = edits[0].times(self._warm)
                warm_ns = min(warm_ns, window_ns(edits[0].program(), warm))
            windows_ns[0] = max(warm_ns, min(windows_ns[0], left_ns))
        speeds = [
            before_ns / max(after_ns, 1.0)
            for before_ns, after_ns in zip(self._before_ns, windows_ns, strict=True)
        ]
        if self._is_measured:
            speeds[0] = self._before_ns[1] / max(windows_ns[0], 1.0)
        spread = self._spread()
        low_ns, usual_ns, high_ns = windows_ns
        # what was measured has its own first calls, unless the GPU's work hid them
        is_cold = self._is_measured and bare_run.limit == "GPU"
        is_cold &= usual_ns < min(_COLD_NS, bare_run.time_ns / 2)
        is_cold &= bare_run.time_ns >= _COLD_NS
        if is_cold and not is_bound:
            high_ns = max(high_ns, usual_ns + _ALONE_NS)
        if self._is_measured and not (is_bound or is_by_host or is_cold):
            usual_ns += self._alone_ns(usual_ns)
            high_ns = max(high_ns, usual_ns)
        low_ns, high_ns = low_ns * min(ratio, 1.0), high_ns * max(ratio, 1.0)
        is_wide = high_ns * (1 + spread) > _NEAR * low_ns * (1 - spread)
        least_speed, most_speed = min(speeds), max(speeds)
        if not is_bound:
            # what the change leaves as it is takes as long as before
            untouched_ns = self._untouched_ns(edit)
            lowest_ns = min(max(low_ns / _UNSEEN, untouched_ns), low_ns)
            most_speed *= low_ns / max(lowest_ns, 1.0)
            low_ns, high_ns = lowest_ns, high_ns * _UNSEEN
            least_speed /= _UNSEEN
        # nothing is promised that is slower than what there is
        usual_ns = min(usual_ns, bare_run.time_ns)
        low_ns = min(low_ns * (1 - spread), usual_ns, bare_run.low_ns)
        high_ns = max(min(high_ns * (1 + spread), self._most_ns), usual_ns)
        return _After(
            low_ns,
            usual_ns,
            high_ns,
            max(least_speed, 1.0),
            most_speed,
            speeds[1],
            (is_by_host or is_cold or bool(depends_on)) and is_wide,
            is_none and is_by_host and is_wide,
        )

    @property
    def _unchanged(self) -> _After:
        bare, spread = self._evidence.bare_run, self._spread()
        low_ns = min(bare.low_ns, (1 - spread) * bare.time_ns)
        high_ns = max(bare.high_ns, (1 + spread) * bare.time_ns)
        return _After(low_ns, bare.time_ns, high_ns, 1.0, 1.0, 1.0, False)

    def _alone_ns(self, after_ns: float) -> float:
        """Give what slow first calls add that the measured time does not show.

        The GPU's work hid a part of them; the host's own share has them in all calls.
        """
        if not _COLD_NS <= after_ns < self._evidence.bare_run.time_ns / 2:
            return 0.0
        is_hidden = self._evidence.bare_run.limit == "GPU"
        return (_HIDDEN if is_hidden else _SPREAD_OUT) * _ALONE_NS

    def _cold_ns(self, edit: Edit) -> float:
        """Return the host's time before the first call, and a short one at the end."""
        times = edit.times(self._times[0])
        main = np.flatnonzero(self._evidence.bare.program.host.lane == 0)[:1]
        tail_ns = times.tail_ns if times.tail_ns < _PAUSE_NS else 0.0
        return float(times.gap_ns[main].sum() + tail_ns)

    @property
    def _most_ns(self) -> int:
        """Give the longest time that the bare run is said to take."""
        bare_run = self._evidence.bare_run
        is_number = self._is_measured or bare_run.limit == "GPU"
        return bare_run.time_ns if is_number else bare_run.high_ns

    def _untouched_ns(self, edit: Edit) -> float:
        """Give the time of what a change leaves: on the GPU, or long on the host."""
        gpu, host = self._evidence.gpu, self._evidence.bare.program.host
        of_gpu_ns = float(gpu.duration_ns[edit.saved_shares <= 0.0].sum())
        times = edit.times(self._times[0])
        host_ns = np.maximum(times.gap_ns, times.cost_ns)[host.lane == 0]
        host_ns = np.append(host_ns, times.tail_ns)
        return max(of_gpu_ns, float(host_ns[host_ns >= _PAUSE_NS].sum()))

    def _spread(self) -> float:
        """Give what varies from run to run: as measured, else as usual."""
        bare_run = self._evidence.bare_run
        if not self._is_measured or bare_run.runs < 2:
            return SPREAD_RATIO
        half = (bare_run.high_ns - bare_run.low_ns) / 2 / max(bare_run.time_ns, 1)
        return min(max(half, _LEAST_SPREAD), _MOST_SPREAD)


def _shortened(evidence: Evidence, edit: Edit) -> _Shortened:
    """Return what an edit makes shorter."""
    least_ns = _LEAST_SHARE * evidence.bare_run.judged_ns
    of_gpu = _of_work(evidence, evidence.gpu.duration_ns * edit.saved_shares, least_ns)
    parts = [*of_gpu.parts]
    if edit.stops_waiting:
        parts.append(WAITS)
    if edit.saved_host_ns >= least_ns:
        parts += [LAUNCHING, OTHER_WORK]
    if edit.closes_up:
        parts += [LAUNCHING, BETWEEN]
    return _Shortened(tuple(dict.fromkeys(parts)), of_gpu.slices)


def _about(evidence: Evidence, events: Int64s) -> _Shortened:
    """Return what a change without an edit is about, from events on the GPU."""
    saved_ns = np.zeros(len(evidence.gpu))
    saved_ns[events] = evidence.gpu.duration_ns[events]
    return _of_work(evidence, saved_ns, 1.0)


def _of_work(evidence: Evidence, saved_ns: Floats, least_ns: float) -> _Shortened:
    gpu = evidence.gpu
    of_name = np.bincount(gpu.name, saved_ns, minlength=len(gpu.names))
    order = np.argsort(-of_name, kind="stable")
    names = [gpu.names[at] for at in order[of_name[order] > 0].tolist()]
    of_part: dict[str, float] = {}
    for name, time_ns in zip(names, np.sort(of_name)[::-1].tolist(), strict=False):
        for part in evidence.trace.parts.get(name, ()):
            of_part[part] = of_part.get(part, 0.0) + time_ns
    parts = (part for part, time_ns in of_part.items() if time_ns >= least_ns)
    return _Shortened(tuple(parts), tuple(names[:_MOST_NAMES]))
