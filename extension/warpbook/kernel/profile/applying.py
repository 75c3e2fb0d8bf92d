"""`%%gpuprof --apply`: edits of the cell's source, each measured on copies.

Advice is for one source. After an edit that gains, the edited cell is profiled on
copies, and what the report of that advises comes next. Where a report has no edit that
is sure, liberal ones are tried, and only one that is right and gains is ever shown.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import msgspec

from warpbook.kernel.profile.edit_names import beside
from warpbook.kernel.runs.bare_times import bare_times
from warpbook.kernel.runs.called_code import called_code
from warpbook.kernel.runs.recording import Recording, RunRecord
from warpbook.kernel.trying import ALL
from warpbook.kernel.trying.edits import run_on_copies, try_edit
from warpbook.kernel.trying.once import Sources, divided
from warpbook.kernel.trying.refusals import StateLost
from warpbook.kernel.trying.trials import EVERY_CHANGE, promise_of
from warpbook_monitors import units
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.no_edit import why_no_edit
from warpbook_profiler.advice.code.source_edit import changed_lines
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.change import Change
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.trials import (
    Edited,
    Trial,
    difference_words,
    first_run_words,
    refused,
)

#: of several changes each must be so many times as fast as the cell before it
_LEAST_GAIN = 1.05
_MOST_EDITS = 10
#: of the time that is left, what one of them may take, and one of several that a
#: person would have one of; once one gains, others have this part of all the time
_SHARE, _SHARE_OF_ONE = 1 / 3, 1 / 2
#: of all the time, what is kept for all of them together
_RESERVE = 0.2


def apply_changes(
    shell: Any,
    code: str,
    name: str,
    seconds: float,
    profile: CellProfile,
    record: RunRecord,
) -> CellProfile:
    """Add to a report what edits of the cell gave, and the cell with them.

    Args:
        shell: in whose namespace the cell has just run.
        code: its source.
        name: of a change; empty for the best of those that it advises, "all" for one
            after the other.
        seconds: how long all of it may take; what was begun is ended.
        profile: of the cell.
        record: what that is of.

    Raises:
        StateLost: what the person had could not be put back.
    """
    applying = _Applying(shell, code, seconds, record)
    edited = applying.edited(name, profile)
    return msgspec.structs.replace(
        profile, trials=tuple(applying.trials), edited=edited
    )


class _Applying:
    def __init__(
        self, shell: Any, source: str, seconds: float, record: RunRecord
    ) -> None:
        self._shell = shell
        self._source = source
        #: of the source with the changes that gained
        self._record = record
        #: edits of what it calls; None until somebody asks
        self._written: dict[str, tuple[Change, ...]] | None = None
        self._seconds = seconds
        self._deadline_s = time.monotonic() + seconds
        self._reserve_s = seconds * _RESERVE
        self.trials: list[Trial] = []
        #: of edits that are not shown
        self._hidden: list[Trial] = []
        #: the source with the changes that gained, their names, and what they gave
        #: together
        self._code = source
        self._kept: list[str] = []
        self._gave: Trial | None = None

    def edited(self, name: str, profile: CellProfile) -> Edited:
        """Give the cell with the changes that were asked for."""
        profile = msgspec.structs.replace(
            profile, changes=tuple(map(self._beside, profile.changes))
        )
        mine = [change for change in profile.changes if name in ("", ALL, change.name)]
        try:
            if name == ALL:
                self._try_all(profile)
            else:
                self._try_one(mine, profile)
        except KeyboardInterrupt:
            self.trials.append(refused(name or mine[0].name, "it was interrupted."))
        if self._kept:
            return self._made(self._code, self._kept, self._gave)
        measured = any(trial.refused is None for trial in self.trials)
        sure = {change.name: change for change in mine if change.code}
        tried = next((one for one in self.trials if one.name in sure), None)
        if tried is None or (name == ALL and measured):
            return Edited(self._why_none(name, mine))
        return self._made(sure[tried.name].code, [tried.name], tried)

    def _try_all(self, profile: CellProfile) -> None:
        # what gained nothing may do so after another; what was wrong stays wrong
        useless, wrong = set[str](), set[str]()
        while offer := self._next(profile, useless | wrong):
            change, is_liberal = offer
            key = change.code if is_liberal else change.name
            seconds = (self._left_s - self._reserve_s) * _SHARE
            if seconds <= 0:
                late = "the time is over; give more by --try-seconds."
                self.trials.append(refused(change.name, late))
                break
            trial, times_ns = self._try(change, profile, seconds, is_liberal)
            if not _gains(trial):
                (useless if _is_right(trial) else wrong).add(key)
                continue
            useless.clear()
            self._code, self._gave = change.code, trial
            self._kept.append(change.name)
            if len(self._kept) == _MOST_EDITS:
                break
            try:
                profile = self._profiled(profile, times_ns)
            except StateLost:
                raise
            except TraceError as problem:
                self.trials.append(refused(EVERY_CHANGE, str(problem)))
                break
        if len(self._kept) > 1:
            # a product of their gains would add up what each of them is off
            self._gave = None
            sides = Sources("", self._source), divided(self._code, self._source)
            self._gave, _ = try_edit(
                self._shell, sides, self._kept, ALL, self._left_s, profile
            )
            self.trials.append(self._gave)

    def _try_one(self, changes: list[Change], profile: CellProfile) -> None:
        """Keep the edit of these changes that is right and gains most.

        Once one gains, only those that promise more are tried, as long as half of the
        time is left.
        """
        offers = self._offers(changes, only_named=True)
        for at, (change, is_liberal) in enumerate(offers):
            best = None if self._gave is None else self._gave.speed
            seconds = self._left_s
            if at + 1 < len(offers):
                seconds *= _SHARE_OF_ONE
            if best is not None:
                seconds = self._left_s - self._seconds * _SHARE_OF_ONE
                promise = promise_of(profile, change.name)
                if promise is not None and promise.speed[1] < best.ratio * _LEAST_GAIN:
                    continue
            elif not is_liberal:
                # one that is sure is tried however long others took
                seconds = max(seconds, self._reserve_s)
            if seconds <= 0:
                continue
            trial, _ = self._try(
                change, profile, seconds, is_liberal, ends=best is not None
            )
            is_better = best is None or (
                trial.speed is not None and trial.speed.ratio > best.ratio
            )
            if _gains(trial) and is_better:
                self._code, self._kept, self._gave = change.code, [change.name], trial

    def _next(
        self, profile: CellProfile, tried: set[str]
    ) -> tuple[Change, bool] | None:
        """Return the next edit, and whether it is liberal."""
        for change, is_liberal in self._offers(list(profile.changes)):
            if (change.code if is_liberal else change.name) not in tried:
                return change, is_liberal
        return None

    def _offers(
        self, changes: list[Change], only_named: bool = False
    ) -> list[tuple[Change, bool]]:
        """Give edits in the order of the report, and which are liberal.

        Those that a compiler or a graph takes long to begin with come last.
        """
        called = called_code(self._code, self._shell.user_ns)
        if self._written is None:
            unwritten = [change.name for change in changes if not change.code]
            self._written = self._record.called_edits(called, unwritten)
        without = (one.code for one in changes if one.name == "no-autograd")
        unrecorded = next(without, "")
        offers = dict[str, tuple[Change, bool]]()
        for some in [*((one,) for one in changes), () if only_named else (*changes,)]:
            if len(some) == 1 and some[0].code:
                offers.setdefault(some[0].code, (self._beside(some[0]), False))
                continue
            named = len(some) == 1 or only_named
            for one in liberal_edits(
                self._code, some, named, called, self._written, unrecorded
            ):
                offers.setdefault(one.code, (self._beside(one), True))
        return sorted(offers.values(), key=lambda one: _begins_slowly(one[0]))

    def _beside(self, change: Change) -> Change:
        """Have an edit bind no name of other cells."""
        code = beside(change.code, self._source, self._shell.user_ns.keys())
        if code == change.code:
            return change
        return msgspec.structs.replace(
            change, code=code, diff=changed_lines(self._source, code)
        )

    def _try(
        self,
        change: Change,
        profile: CellProfile,
        seconds: float,
        is_liberal: bool = False,
        ends: bool = False,
    ) -> tuple[Trial, tuple[int, ...]]:
        name, promise = change.name, promise_of(profile, change.name)
        before, after = (divided(at, self._source) for at in (self._code, change.code))
        trial, times_ns = try_edit(
            self._shell,
            (before, after),
            [name],
            name,
            seconds,
            profile,
            promise,
            is_liberal,
            ends,
        )
        # a liberal edit that gains nothing is not shown
        if not is_liberal or _gains(trial):
            self.trials.append(trial)
        else:
            self._hidden.append(trial)
        return trial, times_ns

    def _profiled(self, profile: CellProfile, times_ns: tuple[int, ...]) -> CellProfile:
        """Profile the edited cell on copies.

        Args:
            profile: of the cell before the edit.
            times_ns: of the edited cell's runs.

        Raises:
            TraceError: there is no profile, or the state was lost.
        """
        records: list[RunRecord] = []

        def recorded(run: Callable[[], Any]) -> Any:
            recording = Recording(memory=False)
            recording.start()
            try:
                value = run()
            except BaseException:
                recording.discard()
                raise
            records.append(recording.stop())
            return value

        sources = divided(self._code, self._source)
        run_on_copies(self._shell, sources, profile, recorded)
        (record,) = records
        bare = bare_times(times_ns, "repeats")
        called = called_code(self._code, self._shell.user_ns)
        run = dataclasses.replace(
            record.run, bare=bare, source=self._code, called=called
        )
        self._record, self._written = dataclasses.replace(record, run=run), None
        return self._record.figures(())

    def _why_none(self, name: str, changes: list[Change]) -> str:
        if name not in ("", ALL) and not changes:
            return f"No edit is made: the report does not advise {name}."
        if not changes:
            return "No edit is made: the report advises no change."
        code = CellCode(self._source)
        gave = {one.name: _shortly(one) for one in (*self._hidden, *self.trials)}
        whys = ((c.name, gave.get(c.name) or why_no_edit(c, code)) for c in changes)
        given = "; ".join(f"{name}: {why}" if why else name for name, why in whys)
        return f"No edit is made: none is known to be right and to gain 5 % ({given})."

    @property
    def _left_s(self) -> float:
        return self._deadline_s - time.monotonic()

    def _made(self, code: str, changes: list[str], gave: Trial | None) -> Edited:
        diff = changed_lines(self._source, code)
        speed = None if gave is None else gave.speed
        if gave is not None and gave.difference is not None and gave.difference.differs:
            # what is known to be wrong is not placed
            return Edited(_sentence(gave), tuple(changes), speed, "", diff)
        once, cell = divided(code, self._source)
        return Edited(_sentence(gave), tuple(changes), speed, _plain(cell), diff, once)


def _begins_slowly(change: Change) -> bool:
    return change.name == "cuda-graph" or "torch.compile" in change.code


def _is_right(trial: Trial) -> bool:
    return trial.difference is not None and not trial.difference.differs


def _gains(trial: Trial) -> bool:
    if trial.speed is None or trial.outcome != "faster":
        return False
    return trial.speed.ratio >= _LEAST_GAIN and _is_right(trial)


def _shortly(trial: Trial) -> str:
    """Say what an edit gave that is not kept."""
    if trial.difference is None or not trial.changed_ns or not trial.unchanged_ns:
        return f"{trial.refused}".rstrip(".")
    if trial.difference.differs:
        return difference_words(trial.difference).rstrip(".")
    changed, unchanged = map(units.duration_ns, (trial.changed_ns, trial.unchanged_ns))
    return f"{changed} instead of {unchanged}"


def _sentence(trial: Trial | None) -> str:
    if trial is None:
        return "Not measured as a whole."
    if trial.difference is None or trial.unchanged_ns is None:
        return f"Not measured: {trial.refused}"
    if trial.difference.differs:
        return "Not shown as better: its results differ from the cell's."
    if trial.outcome != "faster" or trial.changed_ns is None:
        return f"Not shown as better: {trial.outcome}."
    changed, unchanged = map(units.duration_ns, (trial.changed_ns, trial.unchanged_ns))
    results = "with the cell's results"
    if not trial.difference.compared:
        results = "of a cell that has no result to compare"
    better = f"Better: {changed} instead of {unchanged}, {results}."
    return f"{better} {first_run_words(trial)}".rstrip()


def _plain(source: str) -> str:
    """Give a cell's source without the line of `%%gpuprof`."""
    first, _, rest = source.partition("\n")
    return rest if first.startswith("%%gpuprof") else source
