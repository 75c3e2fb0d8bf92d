"""The runs of one piece of code: warm-ups, then pairs of a bare and a profiled run.

Bare and profiled runs alternate, so that a clock that falls meets both alike. The
caller runs the code:

    while runs.again():
        <the code>
    <the code>
    finished = runs.finish()
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from warpbook.kernel.runs.bare_times import RunTimes, bare_times
from warpbook.kernel.runs.recording import Recording, RunRecord, wait_for_gpu
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.cell_profile import CellProfile, Repeats
from warpbook_profiler.model.errors import TraceError

_Kind = Literal["warm-up", "bare", "profiled"]


@dataclass(frozen=True)
class FastestRun:
    """The fastest profiled run."""

    figures: CellProfile
    recorded: RunRecord

    @property
    def window_ms(self) -> tuple[float, float]:
        """Give when it ran, as Unix time."""
        return self.recorded.run.start_ns / 1e6, self.recorded.run.end_ns / 1e6


class Runs:
    """Goes through the runs, one after the other."""

    def __init__(
        self,
        warm_ups: int = 0,
        repeats: int = 1,
        memory: bool = False,
        source: Sequence[str] = (),
        save: str | None = None,
        shapes: bool = True,
        timed: RunTimes | None = None,
        namespace: dict[str, Any] | None = None,
    ) -> None:
        """Plan the runs; one without a bare run beside it unless more are asked for.

        Args:
            warm_ups: runs before all others.
            repeats: profiled runs.
            memory: record each allocation.
            source: the lines of the code, to be shown beside what each took.
            save: the file for the Chrome trace of the run that is reported.
            shapes: record what each operator is called with.
            timed: executions of the same code without the profiler, before.
            namespace: the person's, whose functions the code calls.
        """
        self._timed = timed
        self._namespace = namespace or {}
        self._shapes = shapes
        self._memory = memory
        self._source = source
        self._save = save
        #: what went wrong with the file, in words
        self.not_saved: str | None = None
        self._plan: list[_Kind] = ["profiled"]
        if warm_ups or repeats > 1:
            first: tuple[_Kind, ...] = ("warm-up",)
            pair: tuple[_Kind, ...] = ("bare", "profiled")
            self._plan = [*(first * warm_ups), *(pair * repeats)]
        self._warm_ups = warm_ups
        self._begun = 0
        self._recording: Recording | None = None
        self._bare_since_ns: int | None = None
        self._bare_ns: list[int] = []
        self._profiled_ns: list[int] = []
        self._fastest: RunRecord | None = None
        self._problem: TraceError | None = None
        #: when the code ended, and when a traceback was last shown, as Unix time
        self._ended_ns: int | None = None
        self._failed_ns: int | None = None

    @property
    def count(self) -> int:
        return len(self._plan)

    def again(self) -> bool:
        """End the run before and begin the next; False if that one is the last.

        What goes wrong with the profiler is told by `finish`; the code then runs once.
        """
        try:
            self._end()
            kind = self._plan[self._begun]
            if kind == "profiled":
                recording = Recording(self._memory, self._shapes)
                recording.start()
                self._recording = recording
            elif kind == "bare":
                wait_for_gpu()
                self._bare_since_ns = time.perf_counter_ns()
        except TraceError as problem:
            self._problem = problem
            self._begun = len(self._plan)
            return False
        self._begun += 1
        return self._begun < len(self._plan)

    def at(self, line: int) -> None:
        """Note that the code comes to this line now."""
        if self._recording is not None:
            self._recording.notes.at(line)

    def code_begins(self) -> None:
        """Leave out of the run what IPython does before the code."""
        if self._recording is not None:
            self._recording.code_begins()

    def code_ended(self, at_ns: int) -> None:
        """Leave out of the last run what came after the code's end (Unix time)."""
        self._ended_ns = at_ns

    def shows_traceback(self) -> None:
        """Note that the code ends here if it failed: IPython now writes of it."""
        self._failed_ns = time.time_ns()
        if self._recording is not None:
            self._recording.code_ends(self._failed_ns)

    def finish(self, failed: bool = False) -> FastestRun:
        """End the last run and add the fastest up.

        Args:
            failed: an exception ended it; it is told only if no run was whole.

        Raises:
            TraceError: there is no profile.
        """
        if self._problem is not None:
            raise self._problem
        if failed:
            self._bare_since_ns = None
        if failed and self._fastest is not None:
            self.abandon()
        self._end(self._failed_ns if failed else self._ended_ns)
        fastest = self._fastest
        if fastest is None:
            raise NotProfiled("It ended before the first run with the profiler.")
        # it needs torch, which a recording has imported
        from warpbook.kernel.runs.called_code import called_code

        source = "\n".join(self._source)
        run = dataclasses.replace(
            fastest.run,
            bare=self._bare_times(),
            source=source,
            called=called_code(source, self._namespace),
        )
        fastest = dataclasses.replace(fastest, run=run)
        figures = _with_unfinished(fastest.figures(self._source), self._timed)
        if len(self._plan) > 1:
            repeats = Repeats(
                self._warm_ups, tuple(self._bare_ns), tuple(self._profiled_ns)
            )
            figures = msgspec.structs.replace(figures, repeats=repeats)
        return FastestRun(figures, fastest)

    def _bare_times(self) -> BareTimes | None:
        """Give what is known without the profiler; runs beside it are the nearest."""
        if self._bare_ns:
            return bare_times(self._bare_ns, "repeats")
        return None if self._timed is None else self._timed.bare

    def abandon(self) -> None:
        """End the run that is under way, whatever it recorded."""
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.discard()

    def _end(self, code_end_ns: int | None = None) -> None:
        since_ns, self._bare_since_ns = self._bare_since_ns, None
        if since_ns is not None:
            wait_for_gpu()
            self._bare_ns.append(time.perf_counter_ns() - since_ns)
        recording, self._recording = self._recording, None
        if recording is not None:
            recorded = recording.stop(code_end_ns)
            self._profiled_ns.append(recorded.wall_ns)
            if self._fastest is None or recorded.wall_ns < self._fastest.wall_ns:
                self._fastest = recorded
                self._write(recorded)

    def _write(self, recorded: RunRecord) -> None:
        # at once: when the next recording starts, the GPU's times in this one are lost
        if self._save is None:
            return
        try:
            recorded.save(self._save)
            self.not_saved = None
        except TraceError as problem:
            self.not_saved = str(problem)


def _with_unfinished(figures: CellProfile, timed: RunTimes | None) -> CellProfile:
    """Say so where the code's own runs gave no time, as they ended before the GPU."""
    bare = figures.bare
    if (
        bare is None
        or timed is None
        or bare.basis == "measured"
        or not timed.unfinished
    ):
        return figures
    times = f"{timed.unfinished:,} times" if timed.unfinished > 1 else "once"
    said = (
        f"The cell ran {times} without the profiler and ended before the GPU did: that "
        "gives no bare time. End it with torch.cuda.synchronize(), or read a result."
    )
    cautions = (*bare.cautions, said)
    bare = msgspec.structs.replace(bare, cautions=cautions)
    return msgspec.structs.replace(figures, bare=bare)


class NotProfiled(TraceError):
    """The code ended before it was profiled."""
