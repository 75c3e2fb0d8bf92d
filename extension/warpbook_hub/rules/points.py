"""Points of a result: thresholds that it reaches."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Literal, get_args

from msgspec import Struct

from warpbook.hub_protocol import GradedFacts, Points, Ratio
from warpbook_hub.errors import BadRequest

#: "right": the share of cases that are right, 0 to 1; "of_baseline" and "of_limit": the
#: lower end of the interval of a measured ratio, of a source that is right
Measure = Literal["right", "of_baseline", "of_limit"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
MOST_THRESHOLDS = 30
MOST_POINTS = 10_000


class Threshold(Struct, frozen=True):
    """From so much on a measure is worth so many points."""

    measure: Measure
    least: float
    points: float


class PointScheme(Struct, frozen=True):
    """What results are worth: of each measure the best threshold that is reached."""

    thresholds: tuple[Threshold, ...] = (Threshold("right", 1.0, 10.0),)


def points_of(scheme: PointScheme, facts: GradedFacts, has_gpu: bool = True) -> Points:
    """Compute the points of a result.

    Args:
        scheme: the lab's.
        facts: of the result.
        has_gpu: whether speed could be judged of anybody.
    """
    share = facts.right / facts.of if facts.of > 0 else 0.0
    is_right = facts.verdict in ("right", "too busy") and facts.right >= facts.of > 0
    reached: dict[Measure, float | None] = {
        "right": share,
        "of_baseline": _low(facts.of_baseline) if is_right else None,
        "of_limit": _low(facts.of_limit) if is_right else None,
    }
    points = of = of_all = 0.0
    for measure in MEASURES:
        levels = [level for level in scheme.thresholds if level.measure == measure]
        most = max((level.points for level in levels), default=0.0)
        of_all += most
        # a source that is wrong is never given to a GPU: the speed points were there
        is_missed = has_gpu and not is_right
        if measure == "right" or facts.is_speed_graded or is_missed:
            of += most
        value = reached[measure]
        if value is not None:
            points += max(
                (level.points for level in levels if value >= level.least), default=0.0
            )
    return Points(points, of, of_all)


def check_scheme(scheme: PointScheme) -> None:
    """Refuse a scheme that can't be meant.

    Raises:
        BadRequest: a threshold or its points are negative or not finite, one is of
            no use, or there is none.
    """
    if not 0 < len(scheme.thresholds) <= MOST_THRESHOLDS:
        raise BadRequest(f"Give 1 to {MOST_THRESHOLDS} thresholds.")
    for level in scheme.thresholds:
        is_finite = math.isfinite(level.least) and math.isfinite(level.points)
        if not is_finite or level.least <= 0 or not 0 < level.points <= MOST_POINTS:
            raise BadRequest(
                f"{level.measure}: a threshold is above 0, and worth more than 0 and "
                f"at most {MOST_POINTS:,} points."
            )
        if level.measure == "right" and level.least > 1:
            raise BadRequest("right: a share of the cases is at most 1.")
    for measure in MEASURES:
        levels = sorted(
            (level for level in scheme.thresholds if level.measure == measure),
            key=lambda level: level.least,
        )
        for lower, higher in pairwise(levels):
            if lower.least == higher.least or lower.points >= higher.points:
                raise BadRequest(
                    f"{measure}: {higher.least:g} must be worth more than "
                    f"{lower.least:g} is."
                )


def _low(ratio: Ratio | None) -> float | None:
    return None if ratio is None else ratio.low
