"""Points of a result: thresholds that it reaches."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook.hub.grader_protocol import GradedFacts

#: "right": the share of cases that are right, 0 to 1; "of_baseline" and "of_limit": the
#: lower end of the interval of a measured ratio, of a source that is right
Measure = Literal["right", "of_baseline", "of_limit"]


class Threshold(Struct, frozen=True):
    """From so much on a measure is worth so many points."""

    measure: Measure
    least: float
    points: float


class PointScheme(Struct, frozen=True):
    """What results are worth: of each measure the best threshold that is reached."""

    thresholds: tuple[Threshold, ...] = (Threshold("right", 1.0, 10.0),)


class Points(Struct, frozen=True):
    """What a result is worth."""

    points: float
    #: what could be had where it was graded: without a GPU, nothing for speed
    of: float
    #: what could be had with a GPU
    of_all: float


def points_of(scheme: PointScheme, facts: GradedFacts) -> Points:
    """Compute the points of a result."""
    raise NotImplementedError


def check_scheme(scheme: PointScheme) -> None:
    """Refuse a scheme that can't be meant.

    Raises:
        BadRequest: a threshold or its points are negative or not finite, one is of
            no use, or there is none.
    """
    raise NotImplementedError
