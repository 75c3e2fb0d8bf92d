"""What a learner asks: labs, receipts, results, references, appeals."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from sqlalchemy import select

from warpbook.hub_protocol import (
    AiLog,
    CodeAnswer,
    CodeQuestionView,
    CommentView,
    HandIn,
    LabAiPolicy,
    Nothing,
    OwnCourse,
    OwnLab,
    OwnTotal,
    Place,
    Reference,
    ResultView,
    RubricRowView,
    SubmissionReceipt,
    SubmissionState,
)
from warpbook_hub.course.courses import courses, viewer
from warpbook_hub.course.publications import (
    Publication,
    policy_now,
    publications,
    reference,
    reference_from,
)
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import PEOPLE, SUBMISSIONS
from warpbook_hub.errors import Conflict, Forbidden, NotFound
from warpbook_hub.notices import inbox
from warpbook_hub.queue.overview import place
from warpbook_hub.rules.lateness import Window
from warpbook_hub.rules.visibility import may_see_lab, may_see_marks, may_see_reference
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.parameters import AppealNote, NoticesRead, NoticesWanted
from warpbook_hub.work.appeals import appeal
from warpbook_hub.work.code_questions import answer_question, code_questions
from warpbook_hub.work.feedback import comments
from warpbook_hub.work.marks import own_marks, total_of
from warpbook_hub.work.results import (
    Result,
    attempts_used,
    given_points,
    passed_labs,
    results,
)
from warpbook_hub.work.submissions import (
    receipt,
    receive,
    reported_ai_log,
    submissions_of,
)


def own_courses(admitted: Admitted, _: Nothing) -> list[OwnCourse]:
    own: list[OwnCourse] = []
    for course in courses(admitted.connection):
        try:
            who = viewer(admitted.connection, course.id, admitted.username)
        except NotFound:
            continue
        own.append(OwnCourse(course.id, course.title, who.role))
    return own


def own_labs(admitted: Admitted, _: Nothing) -> list[OwnLab]:
    """Give the labs of a course that a person may see, with how far they are."""
    connection, person = admitted.connection, admitted.viewer.person
    marks = {
        mark.publication: mark
        for mark in own_marks(
            connection, admitted.now_ms, admitted.course.id, admitted.viewer
        )
    }
    passed = passed_labs(connection, admitted.course.id, person)
    own: list[OwnLab] = []
    for lab in publications(connection, admitted.course.id):
        window = window_of(connection, lab.id, person)
        if not may_see_lab(admitted.viewer, window, admitted.now_ms):
            continue
        if lab.is_withdrawn and not admitted.is_staff:
            continue
        handed_in = submissions_of(connection, lab.id, person)
        theirs = SUBMISSIONS.c.id.in_([one.id for one in handed_in])
        mark = marks.get(lab.id)
        own.append(
            OwnLab(
                lab.id,
                lab.lab,
                lab.title,
                lab.language,
                window,
                _is_open(admitted, lab, window),
                lab.id in passed and may_see_marks(admitted.viewer, lab.is_hidden),
                lab.is_withdrawn,
                lab.is_team_work,
                lab.late_percent_per_day,
                None
                if lab.most_attempts is None
                else max(0, lab.most_attempts - attempts_used(connection, theirs)),
                sum(not one.is_replaced for one in handed_in),
                "" if mark is None else mark.state,
                None if mark is None else mark.points,
                0.0 if mark is None else mark.most_points,
                mark is not None and mark.override is not None,
                None if mark is None else mark.computed.submission,
                0 if mark is None else mark.computed.late_hours,
                0.0 if mark is None else mark.computed.penalty,
                policy_now(connection, admitted.now_ms, admitted.course, lab),
            )
        )
    return own


def own_ai_policies(admitted: Admitted, _: Nothing) -> list[LabAiPolicy]:
    """Give what AI assistants may do with each lab that somebody does as a learner."""
    connection, now_ms = admitted.connection, admitted.now_ms
    policies: list[LabAiPolicy] = []
    for course in courses(connection):
        try:
            who = viewer(connection, course.id, admitted.username)
        except NotFound:
            continue
        if who.role != "learner" or who.is_hidden:
            continue
        for lab in publications(connection, course.id):
            window = window_of(connection, lab.id, who.person)
            if may_see_lab(who, window, now_ms) and not lab.is_withdrawn:
                policy = policy_now(connection, now_ms, course, lab)
                policies.append(LabAiPolicy(course.id, lab.lab, policy))
    return policies


def own_total(admitted: Admitted, _: Nothing) -> OwnTotal:
    """Give what somebody's own marks add up to, as far as they may see them."""
    connection, course = admitted.connection, admitted.course
    own = own_marks(connection, admitted.now_ms, course.id, admitted.viewer)
    return total_of(own, publications(connection, course.id), course.drop_lowest)


def hand_in(admitted: Admitted, given: HandIn) -> SubmissionReceipt:
    """Keep a submission; the receipt is sent once it is on the disk."""
    connection, person = admitted.connection, admitted.viewer.person
    window = window_of(connection, admitted.lab.id, person)
    arrived_ms = admitted.now_ms
    return receive(
        connection,
        arrived_ms if window is None else window.counted_ms(arrived_ms),
        admitted.lab.id,
        person,
        given.source,
        given.request,
        given.replace,
        given.ai_log,
    )


def submission_state(admitted: Admitted, _: Nothing) -> SubmissionState:
    connection, submission = admitted.connection, admitted.submission.id
    return _state(admitted, submission, place(connection, admitted.now_ms, submission))


def submission_list(admitted: Admitted, _: Nothing) -> list[SubmissionState]:
    """Give the state of all that a person and their team handed in for a lab."""
    connection = admitted.connection
    own = submissions_of(connection, admitted.lab.id, admitted.viewer.person)
    return [_state(admitted, submission.id, None) for submission in own]


def source(admitted: Admitted, _: Nothing) -> dict[str, str]:
    return {"source": admitted.submission.source}


def ai_log(admitted: Admitted, _: Nothing) -> AiLog | None:
    """Give what AI assistants asked, as the learner's program told it."""
    return reported_ai_log(admitted.connection, admitted.submission.id)


def asked_questions(admitted: Admitted, _: Nothing) -> list[CodeQuestionView]:
    """Give what is asked about a submission, once its result is shown."""
    if not admitted.sees_marks:
        return []
    submission = admitted.submission.id
    return code_questions(admitted.connection, submission, admitted.is_staff)


def make_answer(admitted: Admitted, given: CodeAnswer) -> list[CodeQuestionView]:
    """Keep a learner's choice, and tell what is right."""
    if not admitted.sees_marks:
        raise Forbidden("The marks of this lab are not released yet.")
    if admitted.viewer.person not in admitted.submission.members:
        raise Conflict("Who has handed it in answers.")
    at = (admitted.connection, admitted.now_ms, admitted.submission.id)
    answer_question(*at, given.number, given.choice)
    return asked_questions(admitted, Nothing())


def evidence(admitted: Admitted, _: Nothing) -> dict[str, Any]:
    """Give all results of a submission with their cards; staff, all of the evidence."""
    return {
        "results": [
            {
                "result": result_view(result),
                "evidence": Raw(result.evidence.encode())
                if admitted.is_staff
                else _card_alone(result.evidence),
            }
            for result in results(admitted.connection, admitted.submission.id)
            if admitted.sees_marks
        ]
    }


def lab_reference(admitted: Admitted, _: Nothing) -> Reference:
    """Give the reference, once nobody gains by it."""
    from_ms = reference_from(admitted.connection, admitted.lab.id)
    if not may_see_reference(admitted.viewer, from_ms, admitted.now_ms):
        raise Forbidden("The reference is shown once nobody can hand in any more.")
    return Reference(reference(admitted.connection, admitted.lab.id))


def make_appeal(admitted: Admitted, given: AppealNote) -> dict[str, str]:
    """Ask for a result to be looked at."""
    if not admitted.sees_marks:
        raise Forbidden("The marks of this lab are not released yet.")
    named = appeal(
        admitted.connection,
        admitted.now_ms,
        admitted.viewer.person,
        admitted.job,
        given.note,
    )
    return {"appeal": named}


def result_view(result: Result) -> ResultView:
    """Leave out of a result what is for staff."""
    return ResultView(
        result.job,
        result.run,
        result.stage,
        result.received_ms,
        result.facts,
        result.points if result.is_marked else None,
    )


def _state(admitted: Admitted, submission: str, at: Place | None) -> SubmissionState:
    now = admitted.standing(submission)
    result = None if now.result is None else result_view(now.result)
    return SubmissionState(
        receipt(admitted.connection, submission),
        now.state,
        now.stage,
        now.is_provisional,
        None if now.state == "hidden" else at,
        result,
        *_feedback(admitted, submission),
    )


class _CardAlone(Struct, frozen=True):
    card: Raw = Raw(b"null")


def _card_alone(evidence: str) -> _CardAlone:
    try:
        return msgspec.json.decode(evidence, type=_CardAlone)
    except msgspec.MsgspecError:
        return _CardAlone()


def _is_open(admitted: Admitted, lab: Publication, window: Window | None) -> bool:
    if not lab.takes_submissions:
        return False
    if admitted.is_staff:
        return True
    if lab.is_withdrawn or admitted.viewer.is_hidden or window is None:
        return False
    return window.is_open(admitted.now_ms)


def _feedback(
    admitted: Admitted, submission: str
) -> tuple[tuple[CommentView, ...], tuple[RubricRowView, ...]]:
    """Give what staff wrote and gave, once it is shown."""
    if not admitted.sees_marks:
        return (), ()
    written = comments(admitted.connection, submission)
    of = given_points(admitted.connection, SUBMISSIONS.c.id == submission)
    given = of.get(submission, {})
    return (
        tuple(CommentView(one.line, one.note) for one in written),
        tuple(
            RubricRowView(row.title, given.get(row.title), row.points)
            for row in admitted.lab.rubric.rows
        ),
    )


def own_notices(admitted: Admitted, _: Nothing) -> list[inbox.Notice]:
    """Give a person's newest notices; nothing to somebody whom no course knows."""
    return inbox.notices(admitted.connection, person_asking(admitted))


def read(admitted: Admitted, given: NoticesRead) -> dict[str, int]:
    person = person_asking(admitted)
    connection, now_ms = admitted.connection, admitted.now_ms
    return {"read": inbox.mark_read(connection, now_ms, person, given.up_to_ms)}


def choose(admitted: Admitted, given: NoticesWanted) -> dict[str, str]:
    """Note what a person wants as mail."""
    person = person_asking(admitted)
    if not person:
        raise Conflict("You are in no course here, so there is nothing to tell you.")
    choice = inbox.NoticeChoice(given.mail, given.address)
    inbox.choose(admitted.connection, admitted.now_ms, person, choice)
    return {"mail": given.mail}


def person_asking(admitted: Admitted) -> str:
    """Give the id of who asks; empty where no course knows them."""
    query = select(PEOPLE.c.id).where(PEOPLE.c.username == admitted.username)
    return admitted.connection.execute(query).scalar() or ""
