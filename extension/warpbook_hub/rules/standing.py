"""What a learner has in a course: the best result of each lab, and the late budget."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warpbook_hub.rules.lateness import DAY_H, LatePolicy, kept_share

#: points that differ by less are equal
_EQUAL = 1e-9


class Attempt(Struct, frozen=True):
    """A submission that was graded, as far as marks go."""

    submission: str
    points: float
    #: after this learner's own due date
    late_hours: int


class LabAttempts(Struct, frozen=True):
    """All that a learner has of a lab."""

    publication: str
    attempts: tuple[Attempt, ...]
    policy: LatePolicy
    #: of a point, in the learner's total
    worth: float = 1.0


class LabMark(Struct, frozen=True):
    """What counts of a lab."""

    publication: str
    #: None where nothing was graded
    submission: str | None
    #: before the penalty
    raw_points: float
    penalty: float
    points: float
    late_hours: int
    #: of the late budget
    budget_hours: int


def marks(labs: Sequence[LabAttempts], budget_hours: int) -> tuple[LabMark, ...]:
    """Spend the late budget so that all labs together are worth most.

    The best attempt of each lab counts after its penalty. Of several ways to the same
    sum, one that spends the fewest hours is taken.

    Args:
        labs: of one learner.
        budget_hours: for all of them together.
    """
    # for each lab, then for each number of hours spent on it, the best attempt
    choices = [(_choices(lab, budget_hours), lab.worth) for lab in labs]
    # by hours spent on the labs so far: the most points, and what was chosen for it
    best: dict[int, tuple[float, tuple[LabMark, ...]]] = {0: (0.0, ())}
    for of_lab, worth in choices:
        after: dict[int, tuple[float, tuple[LabMark, ...]]] = {}
        for spent, (points, chosen) in best.items():
            for mark in of_lab:
                hours = spent + mark.budget_hours
                total = points + mark.points * worth
                if hours > budget_hours:
                    continue
                if hours not in after or total > after[hours][0] + _EQUAL:
                    after[hours] = total, (*chosen, mark)
        best = _without_worse(after)
    most = max(points for points, _ in best.values())
    fewest = min(hours for hours, (points, _) in best.items() if points + _EQUAL > most)
    return best[fewest][1]


def nothing_counts(publication: str) -> LabMark:
    return LabMark(publication, None, 0.0, 0.0, 0.0, 0, 0)


def _choices(lab: LabAttempts, budget_hours: int) -> list[LabMark]:
    """Give what counts of a lab for each number of hours that makes a difference."""
    if not lab.attempts:
        return [nothing_counts(lab.publication)]
    spendable = {0}
    for attempt in lab.attempts:
        days = -(-attempt.late_hours // DAY_H)
        for left in range(days):
            # so that this many days are still late
            spendable.add(attempt.late_hours - left * DAY_H)
    choices: list[LabMark] = []
    for hours in sorted(spendable):
        if hours > budget_hours:
            break
        best = max(
            (_mark(lab, attempt, hours) for attempt in lab.attempts),
            key=lambda mark: (mark.points, mark.raw_points, -mark.late_hours),
        )
        if not choices or best.points > choices[-1].points + _EQUAL:
            choices.append(best)
    return choices


def _mark(lab: LabAttempts, attempt: Attempt, hours: int) -> LabMark:
    used = min(hours, attempt.late_hours)
    points = attempt.points * kept_share(attempt.late_hours - used, lab.policy)
    return LabMark(
        lab.publication,
        attempt.submission,
        attempt.points,
        attempt.points - points,
        points,
        attempt.late_hours,
        used,
    )


def _without_worse(
    best: dict[int, tuple[float, tuple[LabMark, ...]]],
) -> dict[int, tuple[float, tuple[LabMark, ...]]]:
    """Leave out ways that spend more hours for no more points."""
    kept: dict[int, tuple[float, tuple[LabMark, ...]]] = {}
    most = -1.0
    for hours in sorted(best):
        if best[hours][0] > most + _EQUAL:
            kept[hours] = best[hours]
            most = best[hours][0]
    return kept
