"""A lab's rubric: rows for which people give points."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from warpbook.hub_protocol import Points
from warpbook_hub.errors import BadRequest
from warpbook_hub.rules.points import MOST_POINTS

MOST_ROWS = 30


class RubricRow(Struct, frozen=True):
    """What is looked at, and what it is worth at most."""

    title: str
    points: float


class Rubric(Struct, frozen=True):
    """The rows of a lab, and what their points are for."""

    rows: tuple[RubricRow, ...] = ()
    #: its points alone count; else they are added to those of the graders
    replaces: bool = False


def with_rubric(graded: Points, rubric: Rubric, given: Mapping[str, float]) -> Points:
    """Compute the points of a result, those of people included.

    Args:
        graded: by the graders.
        rubric: of the lab.
        given: by people, by the title of the row; one that is missing gives none.
    """
    if not rubric.rows:
        return graded
    most = sum(row.points for row in rubric.rows)
    points = sum(min(row.points, given.get(row.title, 0.0)) for row in rubric.rows)
    if rubric.replaces:
        return Points(points, most, most)
    return Points(graded.points + points, graded.of + most, graded.of_all + most)


def is_marked(rubric: Rubric, given: Mapping[str, float]) -> bool:
    """Whether a result has points: where the rubric alone gives them, all rows have."""
    return not rubric.replaces or all(row.title in given for row in rubric.rows)


def check_rubric(rubric: Rubric) -> None:
    """Refuse a rubric that can't be meant.

    Raises:
        BadRequest: a title is there twice, or points are not positive.
    """
    if len(rubric.rows) > MOST_ROWS:
        raise BadRequest(f"A rubric has at most {MOST_ROWS} rows.")
    titles = [row.title for row in rubric.rows]
    if len(set(titles)) < len(titles):
        raise BadRequest("Two rows of the rubric have the same title.")
    for row in rubric.rows:
        if not math.isfinite(row.points) or not 0 < row.points <= MOST_POINTS:
            raise BadRequest(
                f"{row.title}: a row is worth more than 0 and at most "
                f"{MOST_POINTS:,} points."
            )
    if rubric.replaces and not rubric.rows:
        raise BadRequest("A rubric that alone gives the points has a row at least.")
