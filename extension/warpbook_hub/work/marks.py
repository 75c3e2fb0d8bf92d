"""Marks: what counts of a learner's work. Pages, exports, API and LTI ask here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from warpbook.hub_protocol import GradedFacts, OwnTotal
from warpbook_hub.course.courses import course, members
from warpbook_hub.course.publications import Publication, publication, publications
from warpbook_hub.course.windows import windows_of_labs
from warpbook_hub.database.tables import (
    MEMBERSHIPS,
    OVERRIDES,
    PUBLICATIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.errors import NotFound
from warpbook_hub.rules.lateness import LatePolicy, Window, late_hours
from warpbook_hub.rules.points import points_of
from warpbook_hub.rules.rubric import with_rubric
from warpbook_hub.rules.standing import Attempt, LabAttempts, LabMark, marks
from warpbook_hub.rules.totals import (
    Mark,
    MarkState,
    rules_in_words,
    shown_to_learner,
    total,
)
from warpbook_hub.rules.visibility import Viewer
from warpbook_hub.work.results import Result, Standing, standings, timed_publications

#: of who has handed in nothing
NOTHING = GradedFacts("wrong", "", "", 0, 0)
_FEW = 30


def marks_of(
    connection: Connection, now_ms: int, course_id: str, person: str
) -> tuple[Mark, ...]:
    """Compute the marks of a learner for all labs of a course, as staff see them.

    Raises:
        NotFound: they are not of the course.
    """
    by_person = marks_of_people(connection, now_ms, course_id, [person])
    if person not in by_person:
        raise NotFound("This person is not a member of this course.")
    return by_person[person]


def mark_of(
    connection: Connection, now_ms: int, publication_id: str, person: str
) -> Mark:
    """Compute the mark of a learner for one lab, as staff see it.

    Raises:
        NotFound: there is no such lab, or it is not for them.
    """
    course_id = publication(connection, publication_id).course
    for mark in marks_of_people(connection, now_ms, course_id, [person]).get(
        person, ()
    ):
        if mark.publication == publication_id:
            return mark
    raise NotFound("This lab is published for no section of this person.")


def own_marks(
    connection: Connection, now_ms: int, course_id: str, viewer: Viewer
) -> tuple[Mark, ...]:
    """Compute somebody's own marks, as far as they may see them."""
    own = marks_of(connection, now_ms, course_id, viewer.person)
    if viewer.role == "learner":
        return tuple(map(shown_to_learner, own))
    return own


def all_marks(
    connection: Connection, now_ms: int, course_id: str
) -> dict[str, tuple[Mark, ...]]:
    """Compute the marks of all learners of a course, by person."""
    return _marks_alone(all_work(connection, now_ms, course_id))


def all_work(
    connection: Connection, now_ms: int, course_id: str
) -> dict[str, tuple[LabWork, ...]]:
    people = [
        member.person
        for member in members(connection, course_id)
        if member.role == "learner"
    ]
    return work_of_people(connection, now_ms, course_id, people)


def total_of(
    of_learner: Sequence[Mark], labs: Iterable[Publication], drop_lowest: int
) -> OwnTotal:
    """Add up the marks of a learner by the rules of their course.

    Args:
        labs: all of the course.
        drop_lowest: the course's.
    """
    titles = {lab.id: lab.title for lab in labs}
    counted = total(of_learner, drop_lowest)
    counting = {
        titles[mark.publication]: mark.counts
        for mark in of_learner
        if mark.state != "withdrawn"
    }
    return OwnTotal(
        counted.points,
        counted.most_points,
        tuple(titles[publication] for publication in counted.dropped),
        rules_in_words(counting, drop_lowest),
    )


class LabWork(NamedTuple):
    """A mark of a learner, and what they handed in for it."""

    mark: Mark
    #: how often was handed in; what the queue dropped is left out
    attempts: int
    #: the submission that counts, else the newest; empty where there is none
    submission: str
    #: "waits" or "parked", though there may be a mark; else empty
    in_queue: str


class _Attempt(NamedTuple):
    submission: str
    received_ms: int
    standing: Standing


class _Decision(NamedTuple):
    points: float | None
    is_excused: bool


class _LabOf(NamedTuple):
    """A lab of one learner, with what they did and what was decided about it."""

    lab: Publication
    window: Window
    attempts: Sequence[_Attempt]
    graded: Sequence[tuple[_Attempt, Result]]
    decision: _Decision
    state: MarkState
    lab_points: float

    @property
    def spends_late_hours(self) -> bool:
        """Whether late hours gain anything: not where the points are set."""
        return self.state == "graded" and self.decision.points is None

    @property
    def for_budget(self) -> LabAttempts:
        weight = self.lab.counts.weight
        worth = weight / self.lab_points if weight and self.lab_points else 1.0
        return LabAttempts(
            self.lab.id,
            tuple(
                Attempt(
                    one.submission,
                    result.points.points,
                    late_hours(one.received_ms, self.window),
                )
                for one, result in self.graded
            ),
            LatePolicy(self.lab.late_percent_per_day),
            0.0 if weight == 0 else worth,
        )

    def work(self, now_ms: int, person: str, computed: LabMark) -> LabWork:
        points, override = computed.points, self.decision.points
        if override is not None:
            points = override
        most = self.lab_points
        for one, result in self.graded:
            if one.submission == computed.submission:
                most = result.points.of
        window = self.window
        mark = Mark(
            person,
            self.lab.id,
            self.state,
            points if self.state == "graded" else None,
            most,
            self.lab_points,
            computed,
            override,
            self.lab.counts,
            self.lab.is_hidden,
            now_ms >= window.opens_ms and not window.is_open(now_ms),
        )
        taken = [one for one in self.attempts if one.standing.state != "replaced"]
        newest = taken[-1].submission if taken else ""
        return LabWork(
            mark, len(taken), computed.submission or newest, _in_queue(taken)
        )


def marks_of_people(
    connection: Connection, now_ms: int, course_id: str, people: Sequence[str]
) -> dict[str, tuple[Mark, ...]]:
    """Compute the marks of some people for all labs of a course, by person."""
    return _marks_alone(work_of_people(connection, now_ms, course_id, people))


def _marks_alone(
    by_person: Mapping[str, Sequence[LabWork]],
) -> dict[str, tuple[Mark, ...]]:
    return {
        person: tuple(one.mark for one in theirs)
        for person, theirs in by_person.items()
    }


def work_of_people(
    connection: Connection, now_ms: int, course_id: str, people: Sequence[str]
) -> dict[str, tuple[LabWork, ...]]:
    """Give marks and work of some people for all labs of a course, by person."""
    budget_h = course(connection, course_id).late_budget_h
    query = select(MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.course == course_id, MEMBERSHIPS.c.person.in_(list(people))
    )
    there = connection.execute(query).scalars().all()
    labs = publications(connection, course_id)
    attempts = _attempts(connection, course_id, there)
    decisions = _decisions(connection, course_id)
    of_course = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    timed = timed_publications(connection, of_course)
    windows = windows_of_labs(connection, [lab.id for lab in labs], there)
    by_person: dict[str, list[_LabOf]] = {person: [] for person in there}
    for lab in labs:
        nothing = points_of(lab.scheme, NOTHING, lab.id in timed)
        lab_points = with_rubric(nothing, lab.rubric, {}).of
        # a lab that is for no section of theirs is none of theirs
        for person, window in windows[lab.id].items():
            made = attempts.get((lab.id, person), ())
            decision = decisions.get((lab.id, person), _Decision(None, False))
            graded = [
                (one, one.standing.result)
                for one in made
                if one.standing.result and one.standing.result.is_marked
            ]
            state = _state(lab, made, decision, bool(graded))
            of = _LabOf(lab, window, made, graded, decision, state, lab_points)
            by_person[person].append(of)
    return {
        person: tuple(_work_of_one(now_ms, person, theirs, budget_h))
        for person, theirs in by_person.items()
    }


def _state(
    lab: Publication, attempts: Sequence[_Attempt], decision: _Decision, is_graded: bool
) -> MarkState:
    if lab.is_withdrawn:
        return "withdrawn"
    if decision.is_excused:
        return "excused"
    if decision.points is not None or is_graded:
        return "graded"
    states = {one.standing.state for one in attempts}
    if states & {"waits", "runs"}:
        return "waits"
    if "parked" in states:
        return "parked"
    return "not graded" if states else "not handed in"


def _in_queue(attempts: Sequence[_Attempt]) -> str:
    """Return what is first to be known of: what is parked needs a person."""
    states = {one.standing.state for one in attempts}
    if "parked" in states:
        return "parked"
    return "waits" if states & {"waits", "runs"} else ""


def _work_of_one(
    now_ms: int, person: str, theirs: Sequence[_LabOf], budget_h: int
) -> Iterable[LabWork]:
    spending = [of.for_budget for of in theirs if of.spends_late_hours]
    others = [of.for_budget for of in theirs if not of.spends_late_hours]
    computed = {
        mark.publication: mark
        for mark in (*marks(spending, budget_h), *marks(others, 0))
    }
    return (of.work(now_ms, person, computed[of.lab.id]) for of in theirs)


def _attempts(
    connection: Connection, course_id: str, people: Sequence[str]
) -> Mapping[tuple[str, str], list[_Attempt]]:
    """Give what was handed in, by publication and person, the first first."""
    of_course: ColumnElement[bool] = SUBMISSIONS.c.publication.in_(
        select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    )
    # of a whole class all is read, which is faster than to look for each person
    if len(people) < _FEW:
        of_people = select(SUBMISSION_MEMBERS.c.submission).where(
            SUBMISSION_MEMBERS.c.person.in_(list(people))
        )
        of_course &= SUBMISSIONS.c.id.in_(of_people)
    standing = standings(connection, of_course)
    rows = connection.execute(
        select(
            SUBMISSIONS.c.id,
            SUBMISSIONS.c.received_ms,
            SUBMISSIONS.c.publication,
            SUBMISSION_MEMBERS.c.person,
        )
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .where(of_course)
        .order_by(SUBMISSIONS.c.received_ms, SUBMISSIONS.c.number)
    )
    by_lab: dict[tuple[str, str], list[_Attempt]] = {}
    for submission, received_ms, lab, person in rows:
        if submission in standing:
            made = _Attempt(submission, received_ms, standing[submission])
            by_lab.setdefault((lab, person), []).append(made)
    return by_lab


def _decisions(
    connection: Connection, course_id: str
) -> dict[tuple[str, str], _Decision]:
    """Give the last decision about each lab and person."""
    of = OVERRIDES.c
    rows = connection.execute(
        select(of.publication, of.person, of.points, of.is_excused)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == of.publication)
        .where(PUBLICATIONS.c.course == course_id)
        .order_by(of.number)
    )
    return {
        (row.publication, row.person): _Decision(row.points, bool(row.is_excused))
        for row in rows
    }
