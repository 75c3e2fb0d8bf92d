"""Judges the results of the exam by criteria, each with its aim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from benchmarks.open_exam.score import FIRST, NEAR, decided_by, error_of, holds
from tests.gpu.exam.loading import Cell
from tests.gpu.exam.results import (
    AS_FAST,
    AdvisedChange,
    CellResult,
    ProfileFigures,
    Results,
    Times,
)

#: of the time that the expert's change saves, an applied one saves as much
GAINED = 0.8
#: a change that saves less of the time, as a share, is no gain, whoever names it
LEAST_SAVED = 0.05


@dataclass(frozen=True)
class Criterion:
    """One row of the table."""

    name: str
    #: what was reached, and the least or the most that it should be
    value: float | None
    aim: float
    is_at_most: bool = False
    #: what the value is of, in words
    basis: str = ""
    #: cells that fail it
    misses: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Tell whether the aim is reached; nothing measured is no success."""
        if self.value is None:
            return False
        return self.value <= self.aim if self.is_at_most else self.value >= self.aim


def judge(cells: Sequence[Cell], results: Results) -> tuple[Criterion, ...]:
    """Judge the cells that were run; a cell that ended with an error fails."""
    ran = [
        (_as_measured(cell, result), result)
        for cell in cells
        if (result := results.get(cell.name)) is not None and not result.left_out
    ]
    named = [pair for pair in ran if pair[0].changes and pair[0].judged != "no gain"]
    errors, predicted = _bare_errors(ran), _predictions(ran)
    return (
        _share("cells without an error", 1.0, _without_error(ran)),
        _share("verdict kind right", 0.95, _of_profiles(ran, _is_kind_right)),
        _share("same verdict in all profiles of a cell", 0.95, _stable(ran)),
        _share(
            f"named change among the first {FIRST}",
            0.9,
            _of_profiles(named, _is_named),
        ),
        _quantile("predictions, median error", predicted, 0.5, 0.1),
        _share("predictions within 1.1 times", 0.5, _within(predicted, 1.1)),
        _share(f"predictions within {NEAR} times", 0.9, _within(predicted, NEAR)),
        _share("ranges that hold", 0.95, _ranges(ran)),
        _share("bounds that hold", 1.0, _bounds(ran)),
        _share("no gain promised where there is none", 0.95, _without_gain(ran)),
        _quantile("bare time of GPU-bound cells, median error", errors, 0.5, 0.03),
        _quantile("bare time of GPU-bound cells, 90 % error", errors, 0.9, 0.10),
        _share("bare range of host-bound cells holds", 0.9, _host_ranges(ran)),
        _share("edits that run and agree", 0.95, _edits(ran)),
        _share("--try: sign right", 0.95, _signs(ran)),
        _changed_states(ran),
        _share(f"--apply: {GAINED:.0%} of the expert's gain", 0.7, _applied(named)),
        _share("kernel as fast after as before", 0.95, _as_fast(ran)),
    )


def saves_nothing(cell: Cell, result: CellResult) -> bool:
    """Tell whether the expert's change saves next to nothing, as it was measured."""
    before, fixed = result.before, result.fixed
    if not cell.changes or cell.judged == "no gain" or before is None or fixed is None:
        return False
    return fixed.median_ms > (1 - LEAST_SAVED) * before.median_ms


def _as_measured(cell: Cell, result: CellResult) -> Cell:
    """Judge what was measured to save nothing as no gain, whatever the file says."""
    if not saves_nothing(cell, result):
        return cell
    return structs.replace(cell, judged="no gain", changes=cell.changes[:1])


_Pairs = list[tuple[Cell, CellResult]]
_Answers = list[tuple[str, bool]]


def _share(name: str, aim: float, answers: Iterable[tuple[str, bool]]) -> Criterion:
    known = list(answers)
    right = sum(is_right for _, is_right in known)
    misses = dict.fromkeys(cell for cell, is_right in known if not is_right)
    return Criterion(
        name,
        right / len(known) if known else None,
        aim,
        basis=f"{right} of {len(known)}",
        misses=tuple(misses),
    )


def _without_error(ran: _Pairs) -> _Answers:
    return [(cell.name, not result.error) for cell, result in ran]


def _of_profiles(ran: _Pairs, is_right) -> _Answers:
    return [
        (cell.name, is_right(cell, profile))
        for cell, result in ran
        for profile in result.profiles
    ]


def _is_kind_right(cell: Cell, profile: ProfileFigures) -> bool:
    return profile.kind in cell.kinds


def _is_named(cell: Cell, profile: ProfileFigures) -> bool:
    return any(change.name in cell.changes for change in profile.changes[:FIRST])


def _stable(ran: _Pairs) -> _Answers:
    """Compare the verdicts of each cell; "between A and B" is right if A or B holds.

    Half-way between two causes no one stands out: "mixed" is between them, too.
    """
    answers = []
    for cell, result in ran:
        if len(result.profiles) < 2:
            continue
        sure = {profile.kind for profile in result.profiles if not profile.between}
        unsure = [profile.between for profile in result.profiles if profile.between]
        is_one = len(sure) <= 1 and all(sure <= {*ends, "mixed"} for ends in unsure)
        answers.append((cell.name, is_one))
    return answers


def _made(cell: Cell, profile: ProfileFigures) -> AdvisedChange | None:
    """Give the change that the fast cell makes, if the profile names it."""
    mine = (change for change in profile.changes if change.name == cell.changes[0])
    return next(mine, None)


def _promised(ran: _Pairs) -> Iterator[tuple[Cell, AdvisedChange, Times]]:
    """Give the changes that fast cells make, each with the time that came true.

    Where the bare time is that of executions in the notebook, so is the one after the
    change.
    """
    for cell, result in ran:
        if cell.judged == "no gain" or not cell.changes or result.fixed is None:
            continue
        for profile in result.profiles:
            change = _made(cell, profile)
            if change is not None:
                is_measured = profile.bare_basis == "measured"
                alone = result.fixed_alone if is_measured else None
                yield cell, change, alone or result.fixed


def _predictions(ran: _Pairs) -> list[tuple[str, float]]:
    """Give how far off each predicted time is, as a share; a bound is a miss."""
    return [
        (
            cell.name,
            math.inf
            if change.time_ms is None
            else error_of(change.time_ms, fixed.median_ms),
        )
        for cell, change, fixed in _promised(ran)
        if cell.judged == "prediction"
        # a range is judged as one
        and (change.time_ms is not None or change.high_ms is None)
    ]


def _within(errors: list[tuple[str, float]], near: float) -> _Answers:
    return [(cell, error <= near - 1) for cell, error in errors]


def _ranges(ran: _Pairs) -> _Answers:
    """Judge what is told around numbers, and instead of them."""
    return [
        (
            cell.name,
            holds(change.low_ms, change.high_ms, fixed.least_ms, fixed.most_ms),
        )
        for cell, change, fixed in _promised(ran)
        if cell.judged == "prediction"
        and change.low_ms is not None
        and change.high_ms is not None
    ]


def _bounds(ran: _Pairs) -> _Answers:
    """Judge lower bounds."""
    return [
        (cell.name, holds(change.low_ms, None, fixed.least_ms, fixed.most_ms))
        for cell, change, fixed in _promised(ran)
        if change.low_ms is not None
        and (cell.judged == "bound" or change.high_ms is None)
    ]


def _without_gain(ran: _Pairs) -> _Answers:
    """Judge cells in which the expert names no gain: each promise has to come true."""
    return [
        (
            cell.name,
            all(
                _came_true(result, change)
                for change in profile.changes
                if change.is_promise and cell.is_without_gain(change.name)
            ),
        )
        for cell, result in ran
        if cell.judged == "no gain"
        for profile in result.profiles
    ]


def _came_true(result: CellResult, change: AdvisedChange) -> bool:
    """Tell whether the change was made, computes the same, and takes the time.

    The expert may not have thought of it; what was not made has not come true.
    """
    for edit in result.edits:
        if edit.name == change.name and edit.times is not None:
            is_same = not edit.error and not edit.differs
            took = edit.times.least_ms, edit.times.most_ms
            return is_same and holds(change.low_ms, change.high_ms, *took)
    for trial in result.tried:
        if trial.name == change.name and trial.outcome == "faster":
            gained = trial.speed_low or 0.0, trial.speed_high or 0.0
            return not trial.differs and holds(
                change.speed_low, change.speed_high, *gained
            )
    return False


def _estimated(result: CellResult) -> ProfileFigures | None:
    """Give the first profile if its bare time is an estimate."""
    first = next(iter(result.profiles), None)
    return first if first is not None and first.bare_basis == "estimated" else None


def _bare_errors(ran: _Pairs) -> list[tuple[str, float]]:
    errors = []
    for cell, result in ran:
        first = _estimated(result)
        if decided_by(cell.kinds) != "GPU" or first is None or first.bare_ms is None:
            continue
        if result.before is not None:
            error = abs(first.bare_ms / result.before.median_ms - 1)
            errors.append((cell.name, error))
    return errors


def _host_ranges(ran: _Pairs) -> _Answers:
    """Judge the first estimates: a median before or after the profiles is within."""
    answers = []
    for cell, result in ran:
        first = _estimated(result)
        if decided_by(cell.kinds) != "host" or first is None or result.before is None:
            continue
        if first.bare_low_ms is None or first.bare_high_ms is None:
            continue
        medians = [times.median_ms for times in (result.before, result.after) if times]
        holds = min(medians) <= first.bare_high_ms and max(medians) >= first.bare_low_ms
        answers.append((cell.name, holds))
    return answers


def _quantile(
    name: str, errors: list[tuple[str, float]], share: float, aim: float
) -> Criterion:
    values = [error for _, error in errors]
    value = None
    if len(values) > 1:
        value = statistics.quantiles(values, n=10, method="inclusive")[
            round(10 * share) - 1
        ]
    elif values:
        value = values[0]
    return Criterion(
        name,
        value,
        aim,
        is_at_most=True,
        basis=f"of {len(values)}",
        misses=tuple(cell for cell, error in errors if error > aim),
    )


def _edits(ran: _Pairs) -> _Answers:
    return [
        (cell.name, not edit.error and not edit.differs)
        for cell, result in ran
        for edit in result.edits
    ]


def _signs(ran: _Pairs) -> _Answers:
    return [
        (cell.name, result.trial.outcome in cell.try_outcomes)
        for cell, result in ran
        if result.trial is not None
    ]


def _changed_states(ran: _Pairs) -> Criterion:
    seen = [
        (cell.name, one.changed_state)
        for cell, result in ran
        for one in (result.trial, *result.tried, result.applied)
        if one is not None
    ]
    return Criterion(
        "--try and --apply: changed states",
        float(sum(bool(state) for _, state in seen)) if seen else None,
        0.0,
        is_at_most=True,
        basis=f"of {len(seen)}",
        misses=tuple(name for name, state in seen if state),
    )


def _applied(named: _Pairs) -> _Answers:
    """Judge by the time that is saved; the cells are timed in turns."""
    answers = []
    for cell, result in named:
        if result.applied is None:
            continue
        is_reached = False
        if times := result.applied.side_by_side:
            before_ms, fixed_ms, applied_ms = (one.median_ms for one in times)
            is_reached = before_ms - applied_ms >= GAINED * (before_ms - fixed_ms)
        answers.append((cell.name, is_reached))
    return answers


def _as_fast(ran: _Pairs) -> _Answers:
    return [
        (
            cell.name,
            result.after.median_ms <= AS_FAST * slower_ms
            or result.after.least_ms <= slower_ms,
        )
        for cell, result in ran
        if result.before is not None and result.after is not None
        for slower_ms in [
            max(times.median_ms for times in (result.before, result.again) if times)
        ]
    ]
