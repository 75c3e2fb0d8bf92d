"""A long cell: it runs without the profiler but for windows of some steps.

Everything that touches the profiler happens at the end of a step, on the thread that
runs the cell: on another the profiler sees no GPU from its second window on.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field

from warpbook.kernel.link.main_thread import call_on_main_thread
from warpbook.kernel.live.live_plan import Durations, Plan
from warpbook.kernel.live.live_windows import WindowProfile, Windows
from warpbook.kernel.runs.recording import Recording, RunRecord, wait_for_gpu
from warpbook.kernel.runs.step import Steps
from warpbook_monitors import units
from warpbook_profiler.model.errors import ProfilerBusy, TraceError
from warpbook_profiler.model.live import Live, LiveWindow, SlowStep, StepTimes

#: the first steps compile, load and take memory; all before the loop is in the first
_WARM_UP_STEPS = 3
#: a step so many times as long as most is told
_SLOW = 3.0
_MOST_SLOW_STEPS = 10
#: to record one whole step would hold too many events
_LONGEST_STEP_S = 10.0
#: a window that no step ends is given up: the loop may be over, or waits for a test
_STALE_NS = 3_000_000_000
_STALE_STEPS = 5
#: windows in a row that go wrong, until no more are tried
_MOST_FAILURES = 3

TELL_STEPS = (
    "No training steps detected: call warpbook.step() at the end of each step of the "
    "loop. A torch optimizer on the cell's own thread tells its steps by itself."
)


@dataclass
class _Open:
    """A window that is being recorded."""

    start_ns: int
    #: of a step before it, without the profiler
    bare_step_ns: float | None
    #: of each step in it
    took_ns: list[int] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return len(self.took_ns)


class _Stretch:
    """Steps since the last window, which ran without the profiler."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.steps = 0
        self.slow_ns = 0.0


class LiveRuns:
    """One run of a code, in windows."""

    def __init__(self, share: float, shapes: bool = True) -> None:
        """Prepare.

        Args:
            share: of the time, what profiling may take.
            shapes: record what each operator is called with.
        """
        self._share = share
        self._shapes = shapes
        self._is_main = threading.current_thread() is threading.main_thread()
        self._steps = Steps(self._step_ended)
        self._windows = Windows()
        self._bare, self._profiled = Durations(), Durations()
        #: stretches and windows, with the GPU's work waited for
        self._bare_ns, self._bare_steps = 0.0, 0
        self._recorded_ns, self._recorded_steps = 0, 0
        self._slow: tuple[SlowStep, ...] = ()
        self._slow_ns = 0.0
        self._setup_ns: int | None = None
        #: windows that gave nothing: in a row, in all, and for want of a step's end
        self._failures, self._failed, self._given_up = 0, 0, 0
        self._words: dict[str, None] = {}
        self._recording: Recording | None = None
        self._open: _Open | None = None
        #: the profiler is being started or stopped, and nobody may come between
        self._is_busy = False
        #: a part of the step was under the profiler
        self._is_mixed = False
        self._ended_ns: int | None = None
        self._traceback_ns: int | None = None
        self.started_ms = time.time() * 1e3
        self._start_ns = self._boundary_ns = time.perf_counter_ns()
        self._stretch = _Stretch(self._start_ns)
        self._plan = Plan(share, self._start_ns)
        #: of a step, in ns; known when the first window opens
        self._typical_ns = 0.0
        #: of threads that tell about it
        self.telling_ns = 0

    def again(self) -> bool:
        """Begin; the code runs once.

        Raises:
            TraceError: steps can't be listened for.
        """
        wait_for_gpu()
        self._steps.start()
        self.started_ms = time.time() * 1e3
        self._start_ns = self._boundary_ns = time.perf_counter_ns()
        self._stretch = _Stretch(self._start_ns)
        self._plan = Plan(self._share, self._start_ns)
        return False

    def shows_traceback(self) -> None:
        """Note that the code ends here if it failed: IPython now writes of it."""
        self._traceback_ns = time.perf_counter_ns()

    def finish(self, failed: bool = False) -> WindowProfile | None:
        """End, with the window that shows best what held the code back, if any.

        Args:
            failed: an exception ended the code.
        """
        now_ns = time.perf_counter_ns()
        self._ended_ns = (self._traceback_ns if failed else None) or now_ns
        self._is_busy = True
        self._steps.stop()
        # a window that is open ends within a step
        self._discard()
        return self._windows.typical

    @property
    def is_stale(self) -> bool:
        """Whether the window that is open should have ended long ago."""
        if self._open is None or self._is_busy:
            return False
        longest_ns = max(_STALE_NS, _STALE_STEPS * self._typical_ns)
        return time.perf_counter_ns() - self._boundary_ns > longest_ns

    def give_up_stale(self) -> None:
        """Have the cell's thread discard a window that is stale; from another thread.

        Only that thread can, and only between two calls of torch.
        """
        if self._is_main:
            call_on_main_thread(self._give_up)

    def _give_up(self) -> None:
        if not self.is_stale or _is_within_torch():
            return
        self._is_busy = True
        began_ns = time.perf_counter_ns()
        self._discard()
        self._given_up += 1
        self._is_mixed = True
        now_ns = time.perf_counter_ns()
        self._plan.failed(now_ns, now_ns - began_ns)
        self._is_busy = False

    def _discard(self) -> None:
        recording, self._recording, self._open = self._recording, None, None
        if recording is not None:
            recording.discard()

    @property
    def newest(self) -> WindowProfile | None:
        return self._windows.newest

    def view(self) -> Live:
        """Tell how it stands; any thread may ask."""
        elapsed_ns = (self._ended_ns or time.perf_counter_ns()) - self._start_ns
        return Live(
            elapsed_ns=elapsed_ns,
            steps=self._steps.count,
            steps_by=self._steps.by,
            bare=_times(self._bare, self._bare_ns, self._bare_steps),
            profiled=_times(self._profiled, self._recorded_ns, self._recorded_steps),
            slow_steps=self._slow,
            slow_ns=round(self._slow_ns),
            windows=self._windows.shown,
            verdict=self._windows.verdict,
            overhead_ns=self._plan.overhead_ns + self.telling_ns,
            aim_share=self._share,
            setup_ns=self._setup_ns,
            notes=tuple(self._notes()),
        )

    def _notes(self) -> list[str]:
        notes = list(self._words)
        if self._steps.count == 0:
            notes.append(TELL_STEPS)
        if self._steps.elsewhere:
            notes.append(
                "Steps of other threads do not count: only the thread that runs the "
                "cell can be profiled."
            )
        if self._failed:
            notes.append(f"{self._failed:,} windows gave nothing.")
        if self._given_up:
            notes.append(
                f"{self._given_up:,} windows were given up, since no step ended for "
                "seconds."
            )
        if self._ended_ns is not None and self._steps.count and not self._windows.shown:
            notes.append(
                f"The code ended after {self._steps.count:,} steps, before the first "
                "window: profile it without --live."
            )
        return notes

    def _step_ended(self) -> None:
        now_ns = time.perf_counter_ns()
        self._is_busy = True
        try:
            self._take(now_ns, now_ns - self._boundary_ns)
        except ProfilerBusy as problem:
            # the person's own goes first, however long
            self._say(str(problem))
            self._plan.failed(time.perf_counter_ns(), 0)
            self._discard()
        except TraceError as problem:
            self._went_wrong(str(problem), now_ns)
        except Exception as problem:  # noqa: BLE001 - a training must not end by it
            self._failures = _MOST_FAILURES
            self._went_wrong(f"{type(problem).__name__}: {problem}", now_ns)
        finally:
            self._is_busy = False
            self._boundary_ns = time.perf_counter_ns()

    def _take(self, now_ns: int, took_ns: int) -> None:
        if self._open is not None:
            self._open.took_ns.append(took_ns)
            if now_ns - self._open.start_ns >= self._plan.length_ns:
                self._close()
        elif self._steps.count <= _WARM_UP_STEPS or self._is_mixed:
            self._is_mixed = False
            self._stretch = _Stretch(now_ns)
        else:
            self._bare.add(took_ns)
            self._stretch.steps += 1
            self._note_if_slow(now_ns, took_ns)
            if not self._open_if_due(now_ns):
                self._plan.overhead_ns += time.perf_counter_ns() - now_ns

    def _note_if_slow(self, now_ns: int, took_ns: int) -> None:
        if not self._typical_ns or took_ns < _SLOW * self._typical_ns:
            return
        excess_ns = took_ns - self._typical_ns
        self._slow_ns += excess_ns
        self._stretch.slow_ns += excess_ns
        start_ns = now_ns - took_ns - self._start_ns
        slow = (*self._slow, SlowStep(self._steps.count, start_ns, took_ns))
        if len(slow) > _MOST_SLOW_STEPS:
            least = min(slow, key=lambda step: step.duration_ns)
            slow = tuple(step for step in slow if step is not least)
        self._slow = slow

    def _open_if_due(self, now_ns: int) -> bool:
        if self._failures >= _MOST_FAILURES:
            return False
        if not self._may_open(now_ns):
            return False
        # it takes long to ask for, so only when there is no other reason to wait
        self._typical_ns = self._bare.quantile(0.5)
        if self._typical_ns > _LONGEST_STEP_S * 1e9:
            self._say(
                f"A step takes {units.duration_ns(self._typical_ns)}, too long to "
                "be recorded whole: call warpbook.step() more often, such as once for "
                "each batch."
            )
            return False
        if not self._may_open(now_ns):
            return False
        wait_for_gpu()
        bare_step_ns = self._end_stretch()
        recording = Recording(memory=False, shapes=self._shapes)
        # at once: an interrupt may come while it starts
        self._recording = recording
        recording.start()
        self._open = _Open(time.perf_counter_ns(), bare_step_ns)
        return True

    def _may_open(self, now_ns: int) -> bool:
        return self._plan.may_open(now_ns, self._typical_ns, self.telling_ns)

    def _end_stretch(self) -> float | None:
        """Add up the steps before a window; give what one of them takes."""
        stretch = self._stretch
        stretch_ns = time.perf_counter_ns() - stretch.start_ns
        self._bare_ns += stretch_ns
        self._bare_steps += stretch.steps
        if not stretch.steps:
            return None
        return max(stretch_ns - stretch.slow_ns, 0.0) / stretch.steps

    def _close(self) -> None:
        recording, opened = self._recording, self._open
        if recording is None or opened is None:
            return
        recorded = recording.stop()
        self._recording = self._open = None
        self._failures = 0
        began_ns = time.perf_counter_ns()
        # what is needed to write the trace again holds much memory
        profiled = WindowProfile(
            recorded.figures(()), RunRecord(recorded.events, recorded.run, None)
        )
        figures = profiled.figures
        adding_up_ns = time.perf_counter_ns() - began_ns
        recorded_ns = recorded.run.end_ns - recorded.run.start_ns
        overhead_ns = figures.profiler_ns + adding_up_ns
        if figures.first_start_ns is not None:
            self._setup_ns = figures.first_start_ns
            overhead_ns -= figures.first_start_ns
        if opened.bare_step_ns is not None:
            slower_ns = recorded_ns - opened.bare_step_ns * opened.steps
            overhead_ns += max(round(slower_ns), 0)
        # only now: a window that is given up counts nowhere
        for took_ns in opened.took_ns:
            self._profiled.add(took_ns)
        self._recorded_ns += recorded_ns
        self._recorded_steps += opened.steps
        start_ns = opened.start_ns - self._start_ns
        verdict = figures.verdict
        self._windows.add(
            LiveWindow(
                start_ns=start_ns,
                end_ns=start_ns + recorded_ns,
                steps=opened.steps,
                recorded_ns=recorded_ns,
                bare_step_ns=None
                if opened.bare_step_ns is None
                else round(opened.bare_step_ns),
                gpu_busy_ns=figures.gpu_busy_ns,
                kind=None if verdict is None else verdict.kind,
                sentence="" if verdict is None else verdict.sentence,
                launches=figures.completeness.launches,
                matched=figures.completeness.matched,
                overhead_ns=overhead_ns,
            ),
            profiled,
        )
        now_ns = time.perf_counter_ns()
        self._plan.took(now_ns, recorded_ns, overhead_ns, len(recorded.events))
        self._stretch = _Stretch(now_ns)

    def _went_wrong(self, problem: str, since_ns: int) -> None:
        """Go on without a window, and try again later unless it keeps failing."""
        self._discard()
        self._failed += 1
        self._failures += 1
        self._say(problem)
        now_ns = time.perf_counter_ns()
        self._plan.failed(now_ns, now_ns - since_ns)
        self._stretch = _Stretch(now_ns)

    def _say(self, words: str) -> None:
        """Keep a note; the same one once, and not many."""
        if len(self._words) < _MOST_FAILURES:
            self._words[words] = None


def _is_within_torch() -> bool:
    """Whether torch is at work below this call: it may hold what the profiler ends."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__", "").partition(".")[0] == "torch":
            return True
    return False


def _times(counted: Durations, waited_ns: float, waited_steps: int) -> StepTimes | None:
    if not counted.count:
        return None
    return StepTimes(
        steps=counted.count,
        median_ns=round(counted.quantile(0.5)),
        p95_ns=round(counted.quantile(0.95)),
        slowest_ns=counted.longest_ns,
        mean_ns=round(waited_ns / waited_steps) if waited_steps else None,
    )
