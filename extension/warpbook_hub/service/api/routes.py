"""All routes of the JSON API, with who may ask for each."""

from __future__ import annotations

from warpbook.hub_protocol import HandIn, LeaseFor
from warpbook_hub.service.api import (
    competition,
    exports,
    learner,
    leases,
    platform,
    queue,
    staff,
)
from warpbook_hub.service.parameters import (
    AppealAnswer,
    AppealNote,
    CompetitionToOpen,
    CourseSettings,
    ExtensionFor,
    FinalToStart,
    GraderName,
    LabToPublish,
    PointsFor,
    Pseudonym,
    RosterGroup,
    RosterText,
    SessionToCancel,
    SessionToReserve,
    ShownReceipt,
    StaffMember,
    WithReason,
)
from warpbook_hub.service.roster_group import ask_group
from warpbook_hub.service.route import ApiRoute

_SOURCE_BYTES = 2 << 20
_ROSTER_BYTES = 6 << 20
C = "courses/{course}"
L = f"{C}/labs/{{lab}}"
S = f"{C}/submissions/{{submission}}"
J = f"{C}/jobs/{{job}}"
G = "hub/graders/{grader}"
P = f"{C}/people/{{person}}"

API_ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("GET", "courses", "person", learner.own_courses),
    ApiRoute("GET", f"{C}/labs", "member", learner.own_labs),
    ApiRoute("GET", f"{L}/submissions", "member", learner.submission_list),
    ApiRoute(
        "POST",
        f"{L}/submissions",
        "member",
        learner.hand_in,
        HandIn,
        201,
        _SOURCE_BYTES,
    ),
    ApiRoute("GET", f"{L}/reference", "member", learner.lab_reference),
    ApiRoute("GET", S, "member", learner.submission_state),
    ApiRoute("GET", f"{S}/source", "member", learner.source),
    ApiRoute("GET", f"{S}/evidence", "member", learner.evidence),
    ApiRoute("POST", f"{S}/regrade", "staff", staff.regrade_one, WithReason),
    ApiRoute(
        "POST",
        f"{C}/receipts/check",
        "instructor",
        staff.check_receipt,
        ShownReceipt,
        only_reads=True,
    ),
    ApiRoute("POST", f"{J}/appeal", "member", learner.make_appeal, AppealNote, 201),
    ApiRoute(
        "POST", f"{C}/appeals/{{appeal}}/answer", "staff", staff.answer, AppealAnswer
    ),
    ApiRoute(
        "POST",
        f"{C}/roster",
        "instructor",
        staff.roster,
        RosterText,
        most_body_bytes=_ROSTER_BYTES,
    ),
    ApiRoute(
        "POST",
        f"{C}/roster/group",
        "instructor",
        staff.group_roster,
        RosterGroup,
        before=ask_group,
    ),
    ApiRoute("POST", f"{C}/staff", "instructor", staff.staff_member, StaffMember),
    ApiRoute("POST", f"{P}/remove-staff", "instructor", staff.former_staff_member),
    ApiRoute(
        "POST", f"{C}/settings", "instructor", staff.course_settings, CourseSettings
    ),
    ApiRoute("POST", f"{C}/labs", "instructor", staff.publish_lab, LabToPublish),
    ApiRoute("POST", f"{L}/withdraw", "instructor", staff.withdraw_lab, WithReason),
    ApiRoute(
        "POST",
        f"{L}/people/{{person}}/extension",
        "staff",
        staff.extend_for,
        ExtensionFor,
    ),
    ApiRoute(
        "POST",
        f"{L}/people/{{person}}/points",
        "staff",
        staff.set_points,
        PointsFor,
    ),
    ApiRoute(
        "POST",
        f"{L}/similarity",
        "instructor",
        exports.works_to_compare,
        after=exports.compare,
        is_heavy=True,
        only_reads=True,
    ),
    ApiRoute("GET", f"{L}/competition", "member", competition.lab_board),
    ApiRoute(
        "POST",
        f"{L}/competition",
        "instructor",
        competition.open_competition,
        CompetitionToOpen,
    ),
    ApiRoute("POST", f"{L}/competition/join", "member", competition.join, Pseudonym),
    ApiRoute("POST", f"{L}/competition/leave", "member", competition.leave),
    ApiRoute(
        "POST",
        f"{L}/competition/final",
        "instructor",
        competition.start_final,
        FinalToStart,
    ),
    ApiRoute("POST", f"{L}/competition/end", "instructor", competition.end_competition),
    ApiRoute("GET", f"{C}/gpus", "member", leases.own_lease),
    ApiRoute("POST", f"{C}/gpus/take", "member", leases.take, LeaseFor),
    ApiRoute("POST", f"{C}/gpus/extend", "member", leases.extend, LeaseFor),
    ApiRoute("POST", f"{C}/gpus/return", "member", leases.give_back),
    ApiRoute("POST", f"{C}/gpus/sessions", "staff", leases.reserve, SessionToReserve),
    ApiRoute(
        "POST", f"{C}/gpus/sessions/cancel", "staff", leases.cancel, SessionToCancel
    ),
    ApiRoute("GET", f"{C}/queue", "instructor", queue.queue_list),
    ApiRoute("POST", f"{C}/queue/pause", "instructor", queue.pause, WithReason),
    ApiRoute("POST", f"{C}/queue/resume", "instructor", queue.resume),
    ApiRoute("POST", f"{J}/cancel", "staff", queue.cancel_job, WithReason),
    ApiRoute("POST", f"{J}/retry", "staff", queue.retry_job),
    ApiRoute("GET", "hub/queue", "operator", queue.whole_queue),
    ApiRoute("POST", "hub/queue/pause", "operator", queue.pause_all, WithReason),
    ApiRoute("POST", "hub/queue/resume", "operator", queue.resume_all),
    ApiRoute("POST", "hub/jobs/{job}/raise", "operator", queue.raise_job),
    ApiRoute("POST", "hub/graders", "operator", queue.register_grader, GraderName),
    ApiRoute("POST", f"{G}/drain", "operator", queue.drain_grader),
    ApiRoute("POST", f"{G}/activate", "operator", queue.activate_grader),
    ApiRoute("POST", f"{G}/retire", "operator", queue.retire_grader),
    ApiRoute(
        "GET",
        f"{C}/exports/grades",
        "instructor",
        exports.grades,
        is_heavy=True,
    ),
    ApiRoute(
        "GET",
        f"{C}/exports/records",
        "instructor",
        exports.records,
        is_heavy=True,
    ),
    ApiRoute(
        "GET",
        f"{C}/exports/sources",
        "instructor",
        exports.sources,
        is_heavy=True,
    ),
    ApiRoute(
        "POST",
        f"{P}/erase",
        "instructor",
        exports.erase_person,
        WithReason,
        after=exports.scrub,
        is_heavy=True,
    ),
    ApiRoute(
        "POST",
        "hub/backup",
        "operator",
        exports.note_backup,
        before=exports.pace_backups,
        after=exports.make_backup,
        is_heavy=True,
    ),
    ApiRoute("GET", f"{C}/platform/scores", "instructor", platform.scores),
    ApiRoute("POST", f"{C}/platform/scores", "instructor", platform.scores_again),
    ApiRoute("POST", f"{C}/platform/roster", "instructor", platform.platform_roster),
    ApiRoute("POST", f"{C}/platform/unbind", "instructor", platform.unbind_platform),
)
