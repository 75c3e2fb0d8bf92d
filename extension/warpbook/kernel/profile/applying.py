"""`%%gpuprof --apply`: edits of the cell's source, each measured on copies.

Advice is for one source. After an edit that gains, the edited cell is profiled on
copies, and what the report of that advises comes next. Where a report has no edit that
is sure, liberal ones are tried, and only one that is right and gains is ever shown.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import time
from collections.abc import Callable
from symtable import symtable
from typing import Any

import msgspec

from warpbook.kernel.runs.bare_times import bare_times
from warpbook.kernel.runs.recording import Recording, RunRecord
from warpbook.kernel.trying import ALL
from warpbook.kernel.trying.called_code import called_code
from warpbook.kernel.trying.edits import run_on_copies, try_edit
from warpbook.kernel.trying.once import Sources, divided
from warpbook.kernel.trying.refusals import StateLost
from warpbook.kernel.trying.trials import EVERY_CHANGE, promise_of
from warpbook_monitors import units
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.no_edit import why_no_edit
from warpbook_profiler.advice.code.source_edit import changed_lines, names_in
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
#: of the time that is left, what one of them may take
_SHARE = 1 / 3
#: of all the time, what is kept for all of them together
_RESERVE = 0.2


def apply_changes(
    shell: Any, code: str, name: str, seconds: float, profile: CellProfile
) -> CellProfile:
    """Add to a report what edits of the cell gave, and the cell with them.

    Args:
        shell: in whose namespace the cell has just run.
        code: its source.
        name: of a change; empty for the first that has an edit, "all" for one after the
            other.
        seconds: how long all of it may take; what was begun is ended.
        profile: of the cell.

    Raises:
        StateLost: what the person had could not be put back.
    """
    applying = _Applying(shell, code, seconds)
    edited = applying.edited(name, profile)
    return msgspec.structs.replace(
        profile, trials=tuple(applying.trials), edited=edited
    )


class _Applying:
    def __init__(self, shell: Any, source: str, seconds: float) -> None:
        self._shell = shell
        self._source = source
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
        first = next((change for change in mine if change.code), None)
        try:
            if name == ALL:
                self._try_all(profile)
            elif first is None:
                self._try_liberal(mine, profile)
            else:
                self._try(first, profile, self._left_s)
        except KeyboardInterrupt:
            self.trials.append(refused(name or mine[0].name, "it was interrupted."))
        if self._kept:
            return self._made(self._code, self._kept, self._gave)
        measured = any(trial.refused is None for trial in self.trials)
        if first is None or (name == ALL and measured):
            return Edited(self._why_none(name, mine))
        return self._made(first.code, [first.name], self.trials[0])

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

    def _try_liberal(self, changes: list[Change], profile: CellProfile) -> None:
        """Keep the first liberal edit of these changes that is right and gains."""
        called = called_code(self._source, self._shell.user_ns)
        named = tuple(changes)
        for change in liberal_edits(self._source, named, True, called):
            change = self._beside(change)
            seconds = self._left_s * _SHARE
            if seconds <= 0:
                break
            trial, _ = self._try(change, profile, seconds, is_liberal=True)
            if _gains(trial):
                self._code, self._kept, self._gave = change.code, [change.name], trial
                break

    def _next(
        self, profile: CellProfile, tried: set[str]
    ) -> tuple[Change, bool] | None:
        """Return the next edit, and whether it is liberal: the sure ones come first."""
        for change in profile.changes:
            if change.code and change.name not in tried:
                return self._beside(change), False
        called = called_code(self._code, self._shell.user_ns)
        for offered in liberal_edits(self._code, profile.changes, called=called):
            change = self._beside(offered)
            if change.code not in tried:
                return change, True
        return None

    def _beside(self, change: Change) -> Change:
        """Have an edit bind no name of other cells."""
        names = names_in(CellCode(self._source).tree)
        taken = (_own(change.code) - names) & self._shell.user_ns.keys()
        if not taken:
            return change
        code = _renamed(change.code, taken, {*self._shell.user_ns, *names})
        return msgspec.structs.replace(
            change, code=code, diff=changed_lines(self._source, code)
        )

    def _try(
        self,
        change: Change,
        profile: CellProfile,
        seconds: float,
        is_liberal: bool = False,
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
        run = dataclasses.replace(record.run, bare=bare, source=self._code)
        return dataclasses.replace(record, run=run).figures(())

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


def _is_right(trial: Trial) -> bool:
    return trial.difference is not None and not trial.difference.differs


def _gains(trial: Trial) -> bool:
    if trial.speed is None or trial.outcome != "faster":
        return False
    return trial.speed.ratio >= _LEAST_GAIN and _is_right(trial)


def _own(code: str) -> set[str]:
    """Give the names that code sets outside of its functions before it reads them."""
    source = ast.unparse(CellCode(code).tree)
    table = symtable(source, "cell", "exec")
    read, first_set = dict[str, int](), dict[str, int]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Load(), lineno=line):
                read[name] = min(line, read.get(name, line))
            case (
                ast.Name(id=name, lineno=line) | ast.FunctionDef(name=name, lineno=line)
            ):
                first_set[name] = min(line, first_set.get(name, line))
    names = (one.get_name() for one in table.get_symbols() if one.is_assigned())
    return {
        name
        for name in names
        if name in first_set and first_set[name] < read.get(name, first_set[name] + 1)
    }


def _renamed(code: str, taken: set[str], known: set[str]) -> str:
    """Give code with other names for these; one in quotes is made to be there."""
    for name in sorted(taken):
        other = f"{name}_"
        while other in known or re.search(rf"\b{other}\b", code):
            other += "_"
        lines = code.encode().splitlines(keepends=True)
        old, new = name.encode(), other.encode()
        for line, column in sorted(_places(code, name), reverse=True):
            text = lines[line]
            if not text.startswith(old, column):
                # within an f-string, whose parts have no places of their own
                break
            lines[line] = text[:column] + new + text[column + len(old) :]
        else:
            code = b"".join(lines).decode()
    return code


def _places(code: str, name: str) -> set[tuple[int, int]]:
    """Give line and byte of each use of a name as a variable, counted from 0.

    Returns:
        Nothing where text or the keyword of a call has the name, too.
    """
    found = set[tuple[int, int]]()
    lines = code.encode().splitlines()
    for node in ast.walk(CellCode(code).tree):
        match node:
            case ast.Constant(value=str(text)) if text == name:
                return set()
            case ast.keyword(arg=str(keyword)) if keyword == name:
                return set()
            case ast.Name(id=used) | ast.arg(arg=used) if used == name:
                found.add((node.lineno - 1, node.col_offset))
            case ast.FunctionDef(name=used) if used == name:
                line = node.lineno - 1
                found.add((line, lines[line].index(name.encode(), node.col_offset + 3)))
    return found


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
