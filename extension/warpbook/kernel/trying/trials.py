"""Tries the changes to one cell: what fits, in turns, from and back to one state."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch

from warpbook.kernel.trying import ALL
from warpbook.kernel.trying.copies import PROBLEMS, Copies, copies, raised, trial_of
from warpbook.kernel.trying.graph import BodyGraph
from warpbook.kernel.trying.outputs import Outputs, compare
from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.refusals import Refused, StateLost
from warpbook.kernel.trying.saved_tensors import free_host_bytes
from warpbook.kernel.trying.scout import scouting
from warpbook.kernel.trying.source import (
    Body,
    RunnableBody,
    copies_without_waiting,
    read_body,
)
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import Promise, Trial, refused
from warpbook_profiler.techniques.registry import experiments, technique_of
from warpbook_profiler.techniques.technique import Applied, CellActs, Experiment

#: stands for all changes where the cell itself is refused
EVERY_CHANGE = "every change"
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
    deadline_s = time.monotonic() + seconds
    trials = _Trials(profile)
    shown_name = EVERY_CHANGE if name == ALL else name
    try:
        body = read_body(shell, code)
        with copies(shell.user_ns, (body,), profile) as held:
            return tuple(trials.measure(held, body, _chosen(name), deadline_s))
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
    def __init__(self, profile: CellProfile) -> None:
        self._profile = profile
        #: those that an interrupt leaves
        self.done: list[Trial] = []

    def measure(
        self, held: Copies, body: Body, kinds: list[type[Experiment]], deadline_s: float
    ) -> list[Trial]:
        """Try one after the other; each has its share of the time that is left.

        Raises:
            Refused: the cell itself can't be run on copies.
        """
        plain, facts, _ = held.first_run(body, scouting())
        cell = CopiedCell(body, plain, held.namespace, held.reached, facts)
        # the second tells how far unchanged runs differ
        unchanged, again = (held.look(cell.unchanged) for _ in range(2))
        fitting: list[Experiment] = []
        for kind in kinds:
            try:
                change = kind()
                reason = change.why_not(cell)
            except PROBLEMS as problem:
                reason = f"its technique {raised(problem)}."
            if reason is None:
                fitting.append(change)
            else:
                self.done.append(refused(kind.name, bounded(str(reason), _MOST_WORDS)))
        for at, change in enumerate(fitting):
            seconds = (deadline_s - time.monotonic()) / (len(fitting) - at)
            try:
                trial = self._try(change, held, cell, unchanged, again, seconds)
            except Refused as problem:
                trial = refused(change.name, str(problem))
            except StateLost:
                raise
            except PROBLEMS as problem:
                trial = refused(change.name, f"with it the cell {raised(problem)}.")
            self.done.append(trial)
        names = [kind.name for kind in kinds]
        return sorted(self.done, key=lambda trial: names.index(trial.name))

    def _try(
        self,
        change: Experiment,
        held: Copies,
        cell: CopiedCell,
        unchanged: Outputs,
        again: Outputs,
        seconds: float,
    ) -> Trial:
        def changed() -> AbstractContextManager[Applied]:
            return change.applied(cell)

        times, difference = held.compared(
            cell.unchanged,
            changed,
            lambda: compare(unchanged, held.look(changed), again),
            change.warm_ups,
            seconds,
        )
        promise = promise_of(self._profile, change.name)
        return trial_of(change.name, change.advice, times, difference, promise)


@dataclass(frozen=True)
class CopiedCell:
    """A cell whose body runs on copies, as experiments see it (`TriedCell`)."""

    body: Body
    plain: RunnableBody
    namespace: dict[str, Any]
    reached: Reached
    facts: CellActs
    _graph: BodyGraph = field(default_factory=BodyGraph)

    @property
    def modules(self) -> Sequence[torch.nn.Module]:
        return self.reached.modules

    @property
    def optimizers(self) -> Sequence[torch.optim.Optimizer]:
        return self.reached.optimizers

    @property
    def tensors(self) -> Sequence[tuple[str, torch.Tensor]]:
        return self.reached.tensors

    def run(self) -> Any:
        return self.plain.run(self.namespace)

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[Applied]:
        """Change nothing."""
        yield Applied(self.run)

    def is_kept(self, value: object) -> bool:
        """Return whether an object was there before the run: then it can be changed."""
        known: tuple[object, ...] = ()
        if isinstance(value, torch.nn.Module):
            known = tuple(self.reached.modules)
        elif isinstance(value, torch.optim.Optimizer):
            known = tuple(self.reached.optimizers)
        return any(item is value for item in known)

    def free_host_bytes(self) -> int:
        """Return the memory of this machine that is available."""
        return free_host_bytes()

    def without_waiting(self) -> Callable[[], Any]:
        """Return a body whose copies to a GPU return at once."""
        tree = copies_without_waiting(self.body, self.namespace)
        compiled = self.body.compiled(tree)
        return lambda: compiled.run(self.namespace)

    def as_graph(self) -> contextlib.AbstractContextManager[Applied]:
        """Replay the body as a CUDA graph, captured the first time.

        Raises:
            Refused: it can't be captured.
        """
        return self._graph.replaying(self.run, self.namespace, self.reached)
