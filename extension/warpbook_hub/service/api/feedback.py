"""What staff tell learners about their work: comments, and points of a rubric."""

from __future__ import annotations

from warpbook_hub.course.publications import set_rubric
from warpbook_hub.rules.rubric import Rubric, RubricRow
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.staff import check_decides
from warpbook_hub.service.parameters import (
    CommentOn,
    CommentToRemove,
    RubricPoints,
    RubricToSet,
)
from warpbook_hub.work.feedback import comment, give_points, remove_comment


def make_comment(admitted: Admitted, given: CommentOn) -> dict[str, str]:
    """Comment on a line of a submission."""
    check_decides(admitted)
    at = admitted.act
    named = comment(*at, admitted.submission.id, given.line, given.note)
    return {"comment": named}


def take_comment(admitted: Admitted, given: CommentToRemove) -> dict[str, str]:
    """Take a comment away."""
    check_decides(admitted)
    at = admitted.act
    remove_comment(*at, admitted.submission.id, given.comment)
    return {"comment": given.comment}


def rubric_points(admitted: Admitted, given: RubricPoints) -> dict[str, str]:
    """Give points for rows of the rubric."""
    check_decides(admitted)
    at = admitted.act
    points = {row.title: row.points for row in given.rows}
    give_points(*at, admitted.submission.id, points)
    return {"submission": admitted.submission.id}


def lab_rubric(admitted: Admitted, given: RubricToSet) -> dict[str, str]:
    """Give a lab other rows; a row without a title is none."""
    rows = tuple(
        RubricRow(title, row.points)
        for row in given.rows
        if (title := row.title.strip())
    )
    at = admitted.act
    set_rubric(*at, admitted.lab.id, Rubric(rows, given.replaces))
    return {"lab": admitted.lab.id}
