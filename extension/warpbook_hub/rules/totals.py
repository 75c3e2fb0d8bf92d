"""Marks of labs, and totals of them: what counts, with which weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from warpbook_hub.errors import BadRequest
from warpbook_hub.rules.standing import LabMark, nothing_counts

#: "waits": for a grader; "parked": a person has to look; "not graded": what was handed
#: in was cancelled; "hidden": from who looks
MarkState = Literal[
    "graded",
    "waits",
    "parked",
    "not graded",
    "not handed in",
    "excused",
    "hidden",
    "withdrawn",
]
MOST_WEIGHT = 10_000.0
MOST_DROPPED = 100


class LabWeight(Struct, frozen=True):
    """How a lab counts in totals."""

    #: None: as much as its points
    weight: float | None = None
    #: it adds to totals, and nothing to their maximum
    is_bonus: bool = False


class Mark(Struct, frozen=True):
    """What a learner has of a lab."""

    person: str
    publication: str
    state: MarkState
    #: what counts; None in every state but "graded"
    points: float | None
    #: what could be had where the counted attempt was graded
    most_points: float
    #: what could be had by who has handed in nothing
    lab_points: float
    #: what the best attempt gives, after penalty and late budget
    computed: LabMark
    #: of an instructor, in place of it; None where there is none
    override: float | None
    counts: LabWeight = LabWeight()
    #: learners are not shown it until it is released
    is_hidden: bool = False
    #: nothing more is taken of this learner
    is_closed: bool = False


class Total(Struct, frozen=True):
    """What all marks of a learner together are."""

    points: float
    most_points: float
    #: publications that were left out as the lowest
    dropped: tuple[str, ...] = ()


def shown_to_learner(mark: Mark) -> Mark:
    """Take away what a learner is not shown before it is released."""
    if not mark.is_hidden or mark.state not in ("graded", "excused"):
        return mark
    return structs.replace(
        mark,
        state="hidden",
        points=None,
        most_points=mark.lab_points,
        computed=nothing_counts(mark.publication),
        override=None,
    )


def total(marks: Sequence[Mark], drop_lowest: int) -> Total:
    """Add up what is decided: what is graded, and 0 for what closed without work.

    Args:
        marks: of one learner.
        drop_lowest: so many labs with the smallest shares of their points are left
            out, of equal ones the heaviest, as long as one is left.
    """
    counted = {
        mark.publication: _Counted(mark)
        for mark in marks
        if mark.most_points > 0
        and mark.counts.weight != 0
        and (mark.points is not None or _is_missed(mark))
    }
    regular = [name for name, one in counted.items() if not one.mark.counts.is_bonus]
    regular.sort(key=lambda name: (round(counted[name].share, 9), -counted[name].most))
    dropped = tuple(regular[: max(0, min(drop_lowest, len(regular) - 1))])
    left = [one for name, one in counted.items() if name not in dropped]
    return Total(
        math.fsum(one.points for one in left),
        math.fsum(one.most for one in left if not one.mark.counts.is_bonus),
        dropped,
    )


class _Counted(NamedTuple):
    mark: Mark

    @property
    def share(self) -> float:
        return (self.mark.points or 0.0) / self.mark.most_points

    @property
    def most(self) -> float:
        weight = self.mark.counts.weight
        return self.mark.most_points if weight is None else weight

    @property
    def points(self) -> float:
        if self.mark.counts.weight is None:
            return self.mark.points or 0.0
        return self.most * self.share


def rules_in_words(labs: Mapping[str, LabWeight], drop_lowest: int) -> tuple[str, ...]:
    """Say how totals are computed, a sentence each.

    Args:
        labs: by their titles.
        drop_lowest: see `total`.
    """
    sentences = []
    weights = [
        f"{title} {lab.weight:g}"
        for title, lab in labs.items()
        if lab.weight is not None
    ]
    if weights:
        rest = (
            "" if len(weights) == len(labs) else " Other labs are worth their points."
        )
        sentences.append(f"Weights: {', '.join(weights)}.{rest}")
    else:
        sentences.append("Each lab is worth its points.")
    if drop_lowest == 1:
        sentences.append("The lab with the smallest share of its points is left out.")
    elif drop_lowest:
        sentences.append(
            f"The {drop_lowest} labs with the smallest shares of their points are left "
            "out; one lab counts at least."
        )
    bonus = ", ".join(title for title, lab in labs.items() if lab.is_bonus)
    if bonus:
        sentences.append(f"Bonus, which adds nothing to the maximum: {bonus}.")
    sentences.append(
        "A lab counts once it is graded. A lab that closed without a submission counts "
        "0 points."
    )
    return tuple(sentences)


def check_weights(weights: Sequence[float | None], drop_lowest: int) -> None:
    """Refuse rules of a total that can't be meant.

    Raises:
        BadRequest: a weight is negative or not finite, or a count is out of range.
    """
    for weight in weights:
        if weight is not None and not 0 <= weight <= MOST_WEIGHT:
            raise BadRequest(
                f"A weight is 0 to {MOST_WEIGHT:,.0f}, or empty: the lab's points."
            )
    if not 0 <= drop_lowest <= MOST_DROPPED:
        raise BadRequest(f"0 to {MOST_DROPPED} labs can be left out of totals.")


def _is_missed(mark: Mark) -> bool:
    return mark.state == "not handed in" and mark.is_closed
