"""Tries the changes to one cell: what fits, in turns, from and back to one state."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch

from warpbook.kernel.trying import ALL
from warpbook.kernel.trying.cell import CopiedCell
from warpbook.kernel.trying.guard import guarded
from warpbook.kernel.trying.outputs import Outputs, collect, compare
from warpbook.kernel.trying.reach import Reached, reach
from warpbook.kernel.trying.refusals import NotIsolated, Refused, StateLost
from warpbook.kernel.trying.scout import scouting
from warpbook.kernel.trying.side_effects import check
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook.kernel.trying.source import Body, read_body
from warpbook.kernel.trying.turns import planned_pairs, run_once, take_turns
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.capture.torch_gpus import used_devices
from warpbook_profiler.compare.paired_ratio import speed_ratio
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import Promise, Trial, measured, refused
from warpbook_profiler.techniques.registry import experiments, technique_of
from warpbook_profiler.techniques.technique import Applied, CellActs, Experiment

#: stands for all changes where the cell itself is refused
EVERY_CHANGE = "every change"
#: what a cell may raise; an interrupt is for all trials
_PROBLEMS = (Exception, SystemExit)
#: of a reason
_MOST_WORDS = 500


def try_changes(
    shell: Any, code: str, name: str, seconds: float, profile: CellProfile
) -> tuple[Trial, ...]:
    """Measure changes to a cell that has just run.

    Args:
        shell: in whose namespace it ran.
        code: its source.
        name: of a change, or "all".
        seconds: how long all of it may take; what was begun is ended.
        profile: what the report says of the cell.

    Raises:
        StateLost: what the person had could not be put back.
    """
    reserved_bytes = _reserved_bytes()
    try:
        return _try_changes(shell, code, name, seconds, profile)
    finally:
        # what the copies took is the driver's again
        if _reserved_bytes() > reserved_bytes:
            torch.cuda.empty_cache()


def _try_changes(
    shell: Any, code: str, name: str, seconds: float, profile: CellProfile
) -> tuple[Trial, ...]:
    deadline_s = time.monotonic() + seconds
    namespace: dict[str, Any] = shell.user_ns
    shown_name = EVERY_CHANGE if name == ALL else name
    try:
        body = read_body(shell, code)
        check(body, namespace)
        reached = reach(body.names, namespace)
        if reached.problems:
            path, reason = reached.problems[0]
            raise NotIsolated(f"works with {path}, which {reason}")
        snapshot = Snapshot(namespace, reached, _room_bytes(profile))
    except Refused as problem:
        return (refused(shown_name, str(problem)),)
    trials = _Trials(body, namespace, reached, snapshot, profile)
    try:
        with _restored(snapshot):
            return tuple(trials.measure(_chosen(name), deadline_s))
    except Refused as problem:
        return (refused(shown_name, str(problem)),)
    except KeyboardInterrupt:
        return (*trials.done, refused(shown_name, "it was interrupted."))


def promise_of(profile: CellProfile, name: str) -> Promise | None:
    """Return how many times as fast the cell should be, at least and at most.

    Of a bound only the most is known. None where the report does not advise the change,
    or can't say what it gives.
    """
    technique = technique_of(name)
    # what is never advised by its own name stands for all of its technique
    is_advised = technique is None or name in technique.names
    names = (name,) if technique is None or is_advised else technique.names
    for change in profile.changes:
        if change.name in names and change.speed_high is not None:
            return Promise(
                (change.speed_low or 1.0, change.speed_high),
                profile.bare.time_ns if profile.bare else profile.wall_ns,
                change.low_ns
                if change.basis == "not below" and change.low_ns is not None
                else None,
            )
    return None


def _chosen(name: str) -> list[type[Experiment]]:
    """Return experiments: one by its name, or all."""
    return [kind for kind in experiments() if name in (ALL, kind.name)]


class _Trials:
    def __init__(
        self,
        body: Body,
        namespace: dict[str, Any],
        reached: Reached,
        snapshot: Snapshot,
        profile: CellProfile,
    ) -> None:
        self._body = body
        self._namespace = namespace
        self._reached = reached
        self._snapshot = snapshot
        self._profile = profile
        #: those that an interrupt leaves
        self.done: list[Trial] = []

    def measure(self, kinds: list[type[Experiment]], deadline_s: float) -> list[Trial]:
        """Try one after the other; each has its share of the time that is left.

        Raises:
            Refused: the cell itself can't be run on copies.
        """
        cell = CopiedCell(
            self._body,
            self._body.compiled(),
            self._namespace,
            self._reached,
            self._scout(),
        )
        # the second tells how far unchanged runs differ
        unchanged, again = (self._look(cell.unchanged) for _ in range(2))
        fitting: list[Experiment] = []
        for kind in kinds:
            try:
                change = kind()
                reason = change.why_not(cell)
            except _PROBLEMS as problem:
                reason = f"its technique {_raised(problem)}."
            if reason is None:
                fitting.append(change)
            else:
                self.done.append(refused(kind.name, bounded(str(reason), _MOST_WORDS)))
        for at, change in enumerate(fitting):
            seconds = (deadline_s - time.monotonic()) / (len(fitting) - at)
            try:
                trial = self._try(change, cell, unchanged, again, seconds)
            except Refused as problem:
                trial = refused(change.name, str(problem))
            except StateLost:
                raise
            except _PROBLEMS as problem:
                trial = refused(change.name, f"with it the cell {_raised(problem)}.")
            self.done.append(trial)
        names = [kind.name for kind in kinds]
        return sorted(self.done, key=lambda trial: names.index(trial.name))

    def _try(
        self,
        change: Experiment,
        cell: CopiedCell,
        unchanged: Outputs,
        again: Outputs,
        seconds: float,
    ) -> Trial:
        began_s = time.monotonic()

        def changed() -> contextlib.AbstractContextManager[Applied]:
            return change.applied(cell)

        for _ in range(change.warm_ups - 1):
            run_once(self._snapshot, changed)
        difference = compare(unchanged, self._look(changed), again)
        # one more of each tells what a pair takes, with all that is put back
        since_s = time.monotonic()
        for side in (cell.unchanged, changed):
            run_once(self._snapshot, side)
        pair_s = time.monotonic() - since_s
        deadline_s = began_s + seconds
        pairs = planned_pairs(pair_s, deadline_s - time.monotonic())
        times = take_turns(self._snapshot, cell.unchanged, changed, pairs, deadline_s)
        return measured(
            change.name,
            change.advice,
            speed_ratio(times.unchanged_ns, times.changed_ns),
            round(statistics.median(times.unchanged_ns)),
            round(statistics.median(times.changed_ns)),
            len(times.changed_ns),
            difference,
            promise_of(self._profile, change.name),
        )

    def _look(self, changed: Any) -> Outputs:
        """Run once and copy the results."""
        _, outputs = run_once(
            self._snapshot, changed, lambda last: collect(self._snapshot, last)
        )
        result: Outputs = outputs
        return result

    def _scout(self) -> CellActs:
        """Run the body once, stopped at the first thing that can't be undone.

        Raises:
            Refused: it was stopped, or does not run a second time.
        """
        runnable = self._body.compiled()
        noted: list[CellActs] = []

        def run() -> Any:
            with scouting() as facts, guarded(self._body.filename):
                value = runnable.run(self._namespace)
            noted.append(facts)
            return value

        @contextlib.contextmanager
        def watched() -> Iterator[Applied]:
            yield Applied(run)

        try:
            run_once(self._snapshot, watched)
        except Refused:
            raise
        except StateLost:
            raise
        except _PROBLEMS as problem:
            raise Refused(
                f"the cell does not run a second time: it {_raised(problem)}."
            ) from None
        return noted[0]


@contextlib.contextmanager
def _restored(snapshot: Snapshot) -> Iterator[None]:
    """Put everything back at the end, and look whether it is.

    Raises:
        StateLost: something is not as it was.
    """
    try:
        yield
    finally:
        snapshot.restore()
        lost = snapshot.differences()
        if lost:
            raise StateLost(lost)


def _raised(problem: BaseException) -> str:
    said = str(problem).strip().partition("\n")[0]
    name = type(problem).__name__
    return f"raised {name}: {said:.200}" if said else f"raised {name}"


def _room_bytes(profile: CellProfile) -> int:
    """Give what a run needs on the GPU beside what lies there now."""
    if profile.peak_allocated_bytes is None:
        return 0
    allocated: int = sum(map(torch.cuda.memory_allocated, used_devices()))
    return max(profile.peak_allocated_bytes - allocated, 0)


def _reserved_bytes() -> int:
    total_bytes: int = sum(map(torch.cuda.memory_reserved, used_devices()))
    return total_bytes
