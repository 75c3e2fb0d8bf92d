"""What staff do in a course: roster, labs, dates, points, regrades, appeals."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs
from msgspec.json import Decoder

from warpbook.hub_protocol import Nothing, SubmissionReceipt
from warpbook_hub.course.courses import add_staff, change_course, remove_staff
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.mark_settings import hide_marks, set_weights
from warpbook_hub.course.publications import (
    Publication,
    publications,
    publish,
    withdraw,
)
from warpbook_hub.course.roster import (
    RosterChanges,
    RosterShown,
    import_roster,
    preview,
    shown,
)
from warpbook_hub.course.roster_csv import (
    Roster,
    RosterRow,
    parse_roster,
    rows_of_names,
)
from warpbook_hub.course.versions import keep_files, kept_files
from warpbook_hub.errors import BadRequest, BadRoster, NotFound
from warpbook_hub.exports.grades import iso_time
from warpbook_hub.lti.ledger import Ledger, ledger, send_again
from warpbook_hub.lti.links import ask_again, bound_context, unbind
from warpbook_hub.rules.lateness import Window
from warpbook_hub.rules.points import PointScheme, Threshold
from warpbook_hub.rules.totals import LabWeight
from warpbook_hub.rules.visibility import may_decide_work
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.lab_texts import lab_of, version_files
from warpbook_hub.service.parameters import (
    AppealAnswer,
    CourseSettings,
    ExcuseFor,
    ExtensionFor,
    LabToPublish,
    PointsFor,
    Release,
    RosterFile,
    ShownReceipt,
    StaffMember,
    TotalRules,
    WithReason,
)
from warpbook_hub.service.roster_group import NamesOfGroup
from warpbook_hub.service.service import Service
from warpbook_hub.work.appeals import Change, answer_appeal
from warpbook_hub.work.decisions import excuse, override, regrade
from warpbook_hub.work.submissions import is_genuine, sections_of, submission
from warpbook_monitors.budget import NotJson, decode_json


class RosterReading(NamedTuple):
    """A file as it was read, and whether it is imported."""

    roster: Roster
    is_preview: bool


async def read_roster_file(service: Service, given: RosterFile) -> RosterReading:
    """Read a file beside the database's writer: it may take a while."""
    content = given.csv.encode() if given.csv else given.file
    roster = await service.apart(
        lambda: parse_roster(content, given.encoding, given.columns)
    )
    return RosterReading(roster, given.is_preview)


def roster(admitted: Admitted, given: RosterReading) -> RosterShown:
    """Import a roster, or tell what an import would change."""
    if given.roster.problems and not given.is_preview:
        raise BadRoster(given.roster.problems)
    changes = _imported(admitted, given.roster.rows, given.is_preview)
    return shown(given.roster, changes)


def group_roster(admitted: Admitted, given: NamesOfGroup) -> RosterChanges:
    """Import a group of the hub; the hub was asked for its names before."""
    rows = rows_of_names(given.names, given.section or None)
    return _imported(admitted, rows, given.is_preview)


def staff_member(admitted: Admitted, given: StaffMember) -> dict[str, str]:
    person = add_staff(
        *admitted.act,
        admitted.course.id,
        given.username,
        given.role,
        given.section or "main",
    )
    return {"person": person}


def former_staff_member(request: Admitted, _: Nothing) -> dict[str, str]:
    """Take a person's role away."""
    remove_staff(*request.act, request.course.id, request.person)
    return {"person": request.person}


def course_settings(admitted: Admitted, given: CourseSettings) -> dict[str, str]:
    changed = {
        name: value
        for name, value in structs.asdict(given).items()
        if value is not None
    }
    settings = structs.replace(admitted.course, **changed)
    change_course(*admitted.act, settings)
    return {"course": settings.id}


def publish_lab(admitted: Admitted, given: LabToPublish) -> dict[str, str]:
    """Publish a lab of the catalogue or of the course's own, or change how it is."""
    lab = lab_of(given.lab)
    if lab is None:
        raise NotFound(
            f"There is no lab `{given.lab}` in the catalogue, nor in the course's own."
        )
    windows: dict[str, Window] = {}
    for window in given.windows:
        if window.section in windows:
            raise BadRequest("A section has its dates twice.")
        windows[window.section] = Window(
            window.opens_ms, window.due_ms, window.closes_ms
        )
    levels = tuple(
        Threshold(level.measure, level.least, level.points)
        for level in given.thresholds
    )
    named = publish(
        *admitted.act,
        Publication(
            admitted.course.id,
            lab.id,
            given.title.strip() or lab.title,
            lab.language,
            lab.speed is not None,
            windows,
            PointScheme(levels),
            given.is_team_work,
            given.late_percent_per_day,
            given.most_attempts or None,
            given.lab_digest,
            ai_policy=given.ai_policy or None,
            asks_questions=given.asks_questions,
        ),
    )
    if not kept_files(admitted.connection, named):
        keep_files(admitted.connection, named, version_files(lab.id))
    return {"lab": named}


def withdraw_lab(admitted: Admitted, given: WithReason) -> dict[str, str]:
    withdraw(*admitted.act, admitted.lab.id, given.reason)
    return {"lab": admitted.lab.id}


def extend_for(admitted: Admitted, given: ExtensionFor) -> dict[str, str]:
    """Give one learner other dates."""
    extend(
        *admitted.act,
        admitted.lab.id,
        admitted.person,
        given.due_ms,
        given.closes_ms,
        given.reason,
    )
    return {"person": admitted.person}


def set_points(admitted: Admitted, given: PointsFor) -> dict[str, str]:
    override(
        *admitted.act,
        admitted.lab.id,
        admitted.person,
        given.points,
        given.reason,
        given.is_bonus,
    )
    return {"person": admitted.person}


def excuse_person(admitted: Admitted, given: ExcuseFor) -> dict[str, str]:
    """Leave a lab out of a learner's marks, or take that back."""
    excuse(
        *admitted.act, admitted.lab.id, admitted.person, given.reason, given.is_excused
    )
    return {"person": admitted.person}


def release_marks(admitted: Admitted, given: Release) -> dict[str, int]:
    """Show learners marks and feedback of a lab, or hide them."""
    changed = hide_marks(*admitted.act, [admitted.lab.id], given.is_hidden)
    return {"changed": changed}


def change_totals(admitted: Admitted, given: TotalRules) -> dict[str, str]:
    set_weights(
        *admitted.act,
        admitted.course.id,
        given.drop_lowest,
        {one.lab: LabWeight(one.weight, one.is_bonus) for one in given.labs},
    )
    return {"course": admitted.course.id}


def check_receipt(admitted: Admitted, given: ShownReceipt) -> dict[str, str]:
    """Say whether a receipt is this hub's, for who shows it, and what is kept of it."""
    try:
        shown = decode_json(given.receipt, Decoder(SubmissionReceipt))
    except NotJson:
        raise BadRequest(
            "This is no receipt: it is the JSON that a submission's page shows."
        ) from None
    username = given.username.strip().lower()
    if not is_genuine(admitted.connection, shown, username):
        return {"receipt": "not of this hub, or not of this person, or changed"}
    labs = {
        lab.id: lab for lab in publications(admitted.connection, admitted.course.id)
    }
    lab = labs.get(shown.publication)
    try:
        submission(admitted.connection, shown.submission)
        kept = "it is in the database"
    except NotFound:
        kept = "it is not in the database any more"
    return {
        "receipt": "genuine",
        "lab": "not of this course" if lab is None else lab.title,
        "received": iso_time(shown.received_ms),
        "source SHA-256": shown.source_digest,
        "submission": kept,
    }


def regrade_one(admitted: Admitted, given: WithReason) -> dict[str, int]:
    """Grade a submission once more."""
    check_decides(admitted)
    begun = regrade(*admitted.act, [admitted.submission.id], given.reason)
    return {"begun": begun}


def answer(admitted: Admitted, given: AppealAnswer) -> dict[str, str]:
    check_decides(admitted)
    answer_appeal(
        *admitted.act,
        admitted.appeal,
        given.decision,
        given.answer,
        Change(given.points, given.is_bonus, given.is_regraded),
    )
    return {"appeal": admitted.appeal}


def check_decides(admitted: Admitted) -> None:
    """Refuse who may see work for being its author, and decide nothing about it."""
    submission_id = admitted.submission.id
    sections = sections_of(admitted.connection, [submission_id])[submission_id]
    if not may_decide_work(admitted.viewer, sections):
        raise NotFound("There is no such submission.")


def _imported(
    admitted: Admitted, rows: tuple[RosterRow, ...], is_preview: bool
) -> RosterChanges:
    connection, course_id = admitted.connection, admitted.course.id
    if is_preview:
        return preview(connection, course_id, rows)
    return import_roster(connection, admitted.now_ms, admitted.actor, course_id, rows)


def scores(request: Admitted, _: Nothing) -> Ledger:
    """Tell how far the scores are, and what did not go through."""
    context = bound_context(request.connection, request.course.id)
    return ledger(request.connection, request.now_ms, request.course.id, context.issuer)


def scores_again(request: Admitted, _: Nothing) -> dict[str, int]:
    """Have sent again what did not go through."""
    bound_context(request.connection, request.course.id)
    course = request.course.id
    scores = send_again(*request.act, course)
    return {"scores": scores}


def platform_roster(request: Admitted, _: Nothing) -> dict[str, str]:
    """Have the platform asked for its roster; the page tells what came of it."""
    bound_context(request.connection, request.course.id)
    ask_again(request.connection, request.course.id)
    return {"course": request.course.id}


def unbind_platform(request: Admitted, _: Nothing) -> dict[str, str]:
    """Let the next launch by an instructor bind the course anew."""
    course = request.course.id
    unbind(*request.act, course)
    return {"course": course}
