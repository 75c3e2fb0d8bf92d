"""Tries the changes to one cell: what fits, in turns, from and back to one state."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from warpbook.kernel.trying import ALL
from warpbook.kernel.trying.graph import BodyGraph
from warpbook.kernel.trying.guard import check_stores, guarded
from warpbook.kernel.trying.outputs import Outputs, collect, compare
from warpbook.kernel.trying.reach import Reached, reach
from warpbook.kernel.trying.refusals import NotIsolated, Refused, StateLost
from warpbook.kernel.trying.saved_tensors import free_host_bytes
from warpbook.kernel.trying.scout import scouting
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook.kernel.trying.source import Body
from warpbook.kernel.trying.turns import Changed, planned_pairs, run_once, take_turns
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
    reserved_bytes = _on_all_gpus(torch.cuda.memory_reserved)
    try:
        return _try_changes(shell, code, name, seconds, profile)
    finally:
        # what the copies took is the driver's again
        if _on_all_gpus(torch.cuda.memory_reserved) > reserved_bytes:
            torch.cuda.empty_cache()


def _try_changes(
    shell: Any, code: str, name: str, seconds: float, profile: CellProfile
) -> tuple[Trial, ...]:
    deadline_s = time.monotonic() + seconds
    shown_name = EVERY_CHANGE if name == ALL else name
    changes = [kind() for kind in experiments() if name in (ALL, kind.name)]
    trials: list[Trial] = []
    try:
        body = Body(shell, code)
        for part in body.codes():
            check_stores(part, body.namespace)
        reached = reach(body.names, body.namespace)
        if reached.problems:
            path, reason = reached.problems[0]
            raise NotIsolated(f"works with {path}, which {reason}")
        snapshot = Snapshot(body.namespace, reached, _run_bytes(profile))
        with _restored(snapshot):
            measure = _Trials(body, reached, snapshot, profile, trials).measure
            measure(changes, deadline_s)
    except Refused as problem:
        return (refused(shown_name, str(problem)),)
    except KeyboardInterrupt:
        return (*trials, refused(shown_name, "it was interrupted."))
    names = [change.name for change in changes]
    return tuple(sorted(trials, key=lambda trial: names.index(trial.name)))


def promise_of(profile: CellProfile, name: str) -> Promise | None:
    """Return how many times as fast the cell should be, at least and at most.

    Of a bound only the most is known. None where the report does not advise the change,
    nor another of its technique, or can't say what it gives.
    """
    technique = technique_of(name)
    names = (name,) if technique is None else technique.names
    advised = [change for change in profile.changes if change.name in names]
    # its own comes first
    for change in sorted(advised, key=lambda change: change.name != name):
        if change.speed_high is not None:
            return Promise(
                (change.speed_low or 1.0, change.speed_high),
                profile.bare.time_ns if profile.bare else profile.wall_ns,
                change.low_ns if change.basis == "not below" else None,
            )
    return None


class CopiedCell:
    """A cell whose body runs on copies, as experiments see it (`TriedCell`)."""

    def __init__(
        self, body: Body, reached: Reached, snapshot: Snapshot, facts: CellActs
    ) -> None:
        self.facts = facts
        self.modules = reached.modules
        self.optimizers = reached.optimizers
        self.tensors = reached.tensors
        self.run = body.runnable()
        self.without_waiting = body.without_waiting
        self.free_host_bytes = free_host_bytes
        graph = BodyGraph(self.run, body.namespace, reached, snapshot)
        self.as_graph = graph.replaying

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[Applied]:
        """Change nothing."""
        yield Applied(self.run)

    def is_kept(self, value: object) -> bool:
        """Return whether an object was there before the run: then it can be changed."""
        return any(item is value for item in (*self.modules, *self.optimizers))


class _Trials:
    def __init__(
        self,
        body: Body,
        reached: Reached,
        snapshot: Snapshot,
        profile: CellProfile,
        done: list[Trial],
    ) -> None:
        self._body = body
        self._reached = reached
        self._snapshot = snapshot
        self._profile = profile
        #: those that an interrupt leaves
        self._done = done

    def measure(self, changes: list[Experiment], deadline_s: float) -> None:
        """Try one after the other; each has its share of the time that is left.

        Raises:
            Refused: the cell itself can't be run on copies.
        """
        facts = self._scout()
        cell = CopiedCell(self._body, self._reached, self._snapshot, facts)
        # the second tells how far unchanged runs differ
        unchanged, again = (self._look(cell.unchanged) for _ in range(2))
        fitting: list[Experiment] = []
        for change in changes:
            try:
                reason = change.why_not(cell)
            except _PROBLEMS as problem:
                reason = f"its technique {_raised(problem)}."
            if reason is None:
                fitting.append(change)
            else:
                self._done.append(refused(change.name, reason))
        for at, change in enumerate(fitting):
            seconds = (deadline_s - time.monotonic()) / (len(fitting) - at)
            try:
                trial = self._try(change, cell, unchanged, again, seconds)
            except Refused as problem:
                trial = refused(change.name, str(problem))
            except _PROBLEMS as problem:
                trial = refused(change.name, f"with it the cell {_raised(problem)}.")
            self._done.append(trial)

    def _try(
        self,
        change: Experiment,
        cell: CopiedCell,
        unchanged: Outputs,
        again: Outputs,
        seconds: float,
    ) -> Trial:
        deadline_s = time.monotonic() + seconds

        def changed() -> contextlib.AbstractContextManager[Applied]:
            return change.applied(cell)

        for _ in range(change.warm_ups - 1):
            run_once(self._snapshot, changed)
        difference = compare(unchanged, self._look(changed), again)
        # one more of each tells what a pair takes, with all that is put back
        since_s = time.monotonic()
        for side in (cell.unchanged, changed):
            run_once(self._snapshot, side)
        now_s = time.monotonic()
        pairs = planned_pairs(now_s - since_s, deadline_s - now_s)
        unchanged_ns, changed_ns = take_turns(
            self._snapshot, cell.unchanged, changed, pairs, deadline_s
        )
        return measured(
            change.name,
            change.advice,
            speed_ratio(unchanged_ns, changed_ns),
            round(statistics.median(unchanged_ns)),
            round(statistics.median(changed_ns)),
            len(changed_ns),
            difference,
            promise_of(self._profile, change.name),
        )

    def _look(self, changed: Changed) -> Outputs:
        """Run once and copy the results."""
        outputs: Outputs
        _, outputs = run_once(
            self._snapshot, changed, lambda last: collect(self._snapshot, last)
        )
        return outputs

    def _scout(self) -> CellActs:
        """Run the body once, stopped at the first thing that can't be undone.

        Raises:
            Refused: it was stopped, or does not run a second time.
        """
        run = self._body.runnable()
        facts = CellActs()

        def watched() -> Any:
            with scouting(facts), guarded():
                return run()

        try:
            run_once(self._snapshot, lambda: contextlib.nullcontext(Applied(watched)))
        except Refused:
            raise
        except _PROBLEMS as problem:
            raise Refused(
                f"the cell does not run a second time: it {_raised(problem)}."
            ) from None
        return facts


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


def _run_bytes(profile: CellProfile) -> int:
    """Return what a run needs on the GPU beside what lies there now."""
    allocated_bytes = _on_all_gpus(torch.cuda.memory_allocated)
    return max((profile.peak_allocated_bytes or 0) - allocated_bytes, 0)


def _on_all_gpus(count: Callable[[int], int]) -> int:
    return sum(map(count, used_devices()))
