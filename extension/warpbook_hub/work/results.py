"""Results of submissions, as graders gave them; those of a final are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, literal, select

from warpbook.hub_protocol import GradedFacts, Points
from warpbook_hub.database.tables import (
    FINAL_JOBS,
    JOBS,
    PUBLICATIONS,
    RESULTS,
    RUBRIC_POINTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.errors import NotFound
from warpbook_hub.queue.entries import has_gpu
from warpbook_hub.rules.points import PointScheme, points_of
from warpbook_hub.rules.rubric import Rubric, is_marked, with_rubric

#: "waits" and "runs" in stage "cpu" or "gpu"; "parked": a person has to look; "hidden":
#: there is a result, and learners are not shown it
State = Literal["waits", "runs", "graded", "parked", "replaced", "cancelled", "hidden"]

_STATES: dict[str, State] = {
    "queued": "waits",
    "leased": "runs",
    "done": "graded",
    "parked": "parked",
    "replaced": "replaced",
    "cancelled": "cancelled",
}
#: of a job that has not ended
_OPEN = ("queued", "leased", "parked")
_decode_facts = msgspec.json.Decoder(GradedFacts).decode
_decode_scheme = msgspec.json.Decoder(PointScheme).decode
_decode_rubric = msgspec.json.Decoder(Rubric).decode


class Result(Struct, frozen=True):
    """An accepted result of one stage."""

    job: str
    submission: str
    run: int
    stage: str
    received_ms: int
    facts: GradedFacts
    #: those of the lab's rubric are within
    points: Points
    lab_digest: str
    #: JSON for people; hostile, as it quotes the source
    evidence: str
    gpu_ms: int
    energy_mj: int | None
    #: false while the rubric alone gives its points, and nobody has given them
    is_marked: bool


class Standing(Struct, frozen=True):
    """How it stands with a submission."""

    submission: str
    state: State
    #: where it waits or runs
    stage: str
    #: the newest that counts: of the last run that came to an end; None before
    result: Result | None
    #: there is a result, and a GPU has yet to judge its speed
    is_provisional: bool


def standing(connection: Connection, submission_id: str) -> Standing:
    """Tell how it stands with a submission.

    Raises:
        NotFound: there is none.
    """
    by_submission = standings(connection, SUBMISSIONS.c.id == submission_id)
    if submission_id not in by_submission:
        raise NotFound("There is no such submission.")
    return by_submission[submission_id]


def without_result(now: Standing) -> Standing:
    """Tell how it stands without a word of its result: a GPU takes what is right."""
    if now.result is None:
        return now
    return Standing(now.submission, "hidden", "cpu", None, False)


def standings(
    connection: Connection, which: ColumnElement[bool]
) -> dict[str, Standing]:
    """Tell how it stands with some submissions, by their ids; without evidence.

    Args:
        which: a condition on `SUBMISSIONS`.
    """
    jobs = connection.execute(
        select(
            JOBS.c.submission,
            JOBS.c.id,
            JOBS.c.run,
            JOBS.c.stage,
            JOBS.c.state,
            SUBMISSIONS.c.replaced_ms,
        )
        .join(SUBMISSIONS, SUBMISSIONS.c.id == JOBS.c.submission)
        .where(which, outside_finals())
        # "cpu" comes before "gpu"
        .order_by(JOBS.c.submission, JOBS.c.run, JOBS.c.stage)
    )
    by_job = {result.job: result for result in _results(connection, which, False)}
    return {
        submission: _standing(submission, [_Job(*row[1:]) for row in of], by_job)
        for submission, of in groupby(jobs, key=itemgetter(0))
    }


def attempts_used(connection: Connection, which: ColumnElement[bool]) -> int:
    """Count the submissions that take an attempt: those graded, or about to be.

    What is parked, cancelled or found no quiet GPU is no fault of a learner's.

    Args:
        which: a condition on `SUBMISSIONS`.
    """
    return sum(
        one.state != "replaced"
        and (
            one.state in ("waits", "runs")
            or (one.result is not None and one.result.facts.verdict != "too busy")
        )
        for one in standings(connection, which).values()
    )


def passed_labs(connection: Connection, course_id: str, person: str) -> set[str]:
    """Give the publications of a course of which a submission of theirs is right."""
    of_person = select(SUBMISSION_MEMBERS.c.submission).where(
        SUBMISSION_MEMBERS.c.person == person
    )
    of_course = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    theirs = SUBMISSIONS.c.id.in_(of_person) & SUBMISSIONS.c.publication.in_(of_course)
    right = [
        submission
        for submission, stands in standings(connection, theirs).items()
        if stands.result is not None and stands.result.facts.verdict == "right"
    ]
    query = select(SUBMISSIONS.c.publication).where(SUBMISSIONS.c.id.in_(right))
    return set(connection.execute(query).scalars())


def timed_publications(
    connection: Connection, asked_about: Select[tuple[str]]
) -> set[str]:
    """Give the publications of which a GPU has judged a submission, or may.

    Args:
        asked_about: their ids.
    """
    query = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.id.in_(asked_about))
    if not has_gpu(connection):
        of = SUBMISSIONS.alias()
        judged = select(RESULTS.c.job).join(of, of.c.id == RESULTS.c.submission)
        judged = judged.where(of.c.publication == PUBLICATIONS.c.id)
        query = query.where(judged.where(RESULTS.c.stage == "gpu").exists())
    return set(connection.execute(query).scalars())


def results(connection: Connection, submission_id: str) -> list[Result]:
    """Give all results of a submission, regrades included, the first first."""
    return _results(connection, SUBMISSIONS.c.id == submission_id, True)


def given_points(
    connection: Connection, which: ColumnElement[bool]
) -> dict[str, dict[str, float]]:
    """Give what people gave some submissions: by their ids, by the rubric's rows."""
    rows = connection.execute(
        select(
            RUBRIC_POINTS.c.submission,
            RUBRIC_POINTS.c.criterion,
            RUBRIC_POINTS.c.points,
        )
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RUBRIC_POINTS.c.submission)
        .where(which)
    )
    given: dict[str, dict[str, float]] = {}
    for submission, criterion, points in rows:
        given.setdefault(submission, {})[criterion] = points
    return given


class _Job(NamedTuple):
    id: str
    run: int
    stage: str
    state: str
    #: of its submission
    replaced_ms: int | None


def _standing(
    submission: str, jobs: Sequence[_Job], by_job: Mapping[str, Result]
) -> Standing:
    # a regrade that was taken back leaves open what was before it
    last = next((job for job in reversed(jobs) if job.state in _OPEN), jobs[-1])
    counts: Result | None = None
    is_provisional = False
    for run, of_run in groupby(jobs, key=attrgetter("run")):
        stages = list(of_run)
        done = [by_job[job.id] for job in stages if job.id in by_job]
        is_open = stages[-1].state in _OPEN
        is_whole = stages[-1].state == "done"
        # a regrade counts once it has ended by itself: half of one is no result
        if done and (is_whole or counts is None):
            counts, is_provisional = done[-1], is_open and run == last.run
    state = _STATES[last.state]
    if last.replaced_ms is not None:
        state = "replaced"
    elif last.state in ("replaced", "cancelled") and counts is not None:
        state = "graded"
    return Standing(submission, state, last.stage, counts, is_provisional)


def _results(
    connection: Connection, which: ColumnElement[bool], with_evidence: bool
) -> list[Result]:
    own = (
        *(RESULTS.c.job, RESULTS.c.submission, RESULTS.c.run, RESULTS.c.stage),
        *(RESULTS.c.received_ms, RESULTS.c.facts, RESULTS.c.lab_digest),
        RESULTS.c.evidence if with_evidence else literal(""),
        *(RESULTS.c.gpu_ms, RESULTS.c.energy_mj, SUBMISSIONS.c.publication),
    )
    rows = connection.execute(
        select(*own)
        .join(SUBMISSIONS, SUBMISSIONS.c.id == RESULTS.c.submission)
        .where(which, RESULTS.c.job.not_in(select(FINAL_JOBS.c.job)))
        .order_by(RESULTS.c.run, RESULTS.c.stage)
    ).all()
    asked_about = select(SUBMISSIONS.c.publication).where(which)
    timed = timed_publications(connection, asked_about)
    given = given_points(connection, which)
    of_labs = select(PUBLICATIONS.c.id, PUBLICATIONS.c.scheme, PUBLICATIONS.c.rubric)
    labs = {
        lab: (_decode_scheme(scheme), _decode_rubric(rubric))
        for lab, scheme, rubric in connection.execute(
            of_labs.where(PUBLICATIONS.c.id.in_(asked_about))
        )
    }
    # a class has few results that differ
    graded: dict[tuple[str, str], tuple[GradedFacts, Points]] = {}
    accepted: list[Result] = []
    for row in rows:
        job, submission, run, stage, received_ms, text, digest = row[:7]
        evidence, gpu_ms, energy_mj, lab = row[7:]
        scheme, rubric = labs[lab]
        if (lab, text) not in graded:
            facts = _decode_facts(text)
            graded[lab, text] = facts, points_of(scheme, facts, lab in timed)
        facts, points = graded[lab, text]
        of_rows = given.get(submission, {})
        accepted.append(
            Result(
                *(job, submission, run, stage, received_ms, facts),
                with_rubric(points, rubric, of_rows),
                *(digest, evidence, gpu_ms, energy_mj),
                is_marked(rubric, of_rows),
            )
        )
    return accepted
