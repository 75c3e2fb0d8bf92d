"""What a learner has in a course: the best result of each lab, and the late budget."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warpbook.hub.rules.lateness import LatePolicy


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
    """Spend the late budget so that the points of all labs together are most.

    The best attempt of each lab counts after its penalty. Of several ways to the same
    sum, one that spends the fewest hours is taken.

    Args:
        labs: of one learner.
        budget_hours: for all of them together.
    """
    raise NotImplementedError
