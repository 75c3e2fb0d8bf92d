"""All routes of the JSON API, with who may ask for each."""

from __future__ import annotations

from warpbook.hub_protocol import HandIn, LeaseFor
from warpbook_hub.service.api import (
    competing,
    learning,
    leasing,
    platform,
    queueing,
    taking_out,
    teaching,
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
    ApiRoute("GET", "courses", "person", learning.own_courses),
    ApiRoute("GET", f"{C}/labs", "member", learning.own_labs),
    ApiRoute("GET", f"{L}/submissions", "member", learning.submission_list),
    ApiRoute(
        "POST",
        f"{L}/submissions",
        "member",
        learning.hand_in,
        HandIn,
        201,
        _SOURCE_BYTES,
    ),
    ApiRoute("GET", f"{L}/reference", "member", learning.lab_reference),
    ApiRoute("GET", S, "member", learning.submission_state),
    ApiRoute("GET", f"{S}/source", "member", learning.source),
    ApiRoute("GET", f"{S}/evidence", "member", learning.evidence),
    ApiRoute("POST", f"{S}/regrade", "staff", teaching.regrade_one, WithReason),
    ApiRoute(
        "POST",
        f"{C}/receipts/check",
        "instructor",
        teaching.check_receipt,
        ShownReceipt,
        only_reads=True,
    ),
    ApiRoute("POST", f"{J}/appeal", "member", learning.make_appeal, AppealNote, 201),
    ApiRoute(
        "POST", f"{C}/appeals/{{appeal}}/answer", "staff", teaching.answer, AppealAnswer
    ),
    ApiRoute(
        "POST",
        f"{C}/roster",
        "instructor",
        teaching.roster,
        RosterText,
        most_body_bytes=_ROSTER_BYTES,
    ),
    ApiRoute(
        "POST",
        f"{C}/roster/group",
        "instructor",
        teaching.group_roster,
        RosterGroup,
        before=ask_group,
    ),
    ApiRoute("POST", f"{C}/staff", "instructor", teaching.staff_member, StaffMember),
    ApiRoute("POST", f"{P}/remove-staff", "instructor", teaching.former_staff_member),
    ApiRoute(
        "POST", f"{C}/settings", "instructor", teaching.course_settings, CourseSettings
    ),
    ApiRoute("POST", f"{C}/labs", "instructor", teaching.publish_lab, LabToPublish),
    ApiRoute("POST", f"{L}/withdraw", "instructor", teaching.withdraw_lab, WithReason),
    ApiRoute(
        "POST",
        f"{L}/people/{{person}}/extension",
        "staff",
        teaching.extend_for,
        ExtensionFor,
    ),
    ApiRoute(
        "POST",
        f"{L}/people/{{person}}/points",
        "staff",
        teaching.set_points,
        PointsFor,
    ),
    ApiRoute(
        "POST",
        f"{L}/similarity",
        "instructor",
        taking_out.works_to_compare,
        after=taking_out.compare,
        is_heavy=True,
        only_reads=True,
    ),
    ApiRoute("GET", f"{L}/competition", "member", competing.lab_board),
    ApiRoute(
        "POST",
        f"{L}/competition",
        "instructor",
        competing.open_competition,
        CompetitionToOpen,
    ),
    ApiRoute("POST", f"{L}/competition/join", "member", competing.join, Pseudonym),
    ApiRoute("POST", f"{L}/competition/leave", "member", competing.leave),
    ApiRoute(
        "POST",
        f"{L}/competition/final",
        "instructor",
        competing.start_final,
        FinalToStart,
    ),
    ApiRoute("POST", f"{L}/competition/end", "instructor", competing.end_competition),
    ApiRoute("GET", f"{C}/gpus", "member", leasing.own_lease),
    ApiRoute("POST", f"{C}/gpus/take", "member", leasing.take, LeaseFor),
    ApiRoute("POST", f"{C}/gpus/extend", "member", leasing.extend, LeaseFor),
    ApiRoute("POST", f"{C}/gpus/return", "member", leasing.give_back),
    ApiRoute("POST", f"{C}/gpus/sessions", "staff", leasing.reserve, SessionToReserve),
    ApiRoute(
        "POST", f"{C}/gpus/sessions/cancel", "staff", leasing.cancel, SessionToCancel
    ),
    ApiRoute("GET", f"{C}/queue", "instructor", queueing.queue_list),
    ApiRoute("POST", f"{C}/queue/pause", "instructor", queueing.pause, WithReason),
    ApiRoute("POST", f"{C}/queue/resume", "instructor", queueing.resume),
    ApiRoute("POST", f"{J}/cancel", "staff", queueing.cancel_job, WithReason),
    ApiRoute("POST", f"{J}/retry", "staff", queueing.retry_job),
    ApiRoute("GET", "hub/queue", "operator", queueing.whole_queue),
    ApiRoute("POST", "hub/queue/pause", "operator", queueing.pause_all, WithReason),
    ApiRoute("POST", "hub/queue/resume", "operator", queueing.resume_all),
    ApiRoute("POST", "hub/jobs/{job}/raise", "operator", queueing.raise_job),
    ApiRoute("POST", "hub/graders", "operator", queueing.register_grader, GraderName),
    ApiRoute("POST", f"{G}/drain", "operator", queueing.drain_grader),
    ApiRoute("POST", f"{G}/activate", "operator", queueing.activate_grader),
    ApiRoute("POST", f"{G}/retire", "operator", queueing.retire_grader),
    ApiRoute(
        "GET",
        f"{C}/exports/grades",
        "instructor",
        taking_out.grades,
        is_heavy=True,
    ),
    ApiRoute(
        "GET",
        f"{C}/exports/records",
        "instructor",
        taking_out.records,
        is_heavy=True,
    ),
    ApiRoute(
        "GET",
        f"{C}/exports/sources",
        "instructor",
        taking_out.sources,
        is_heavy=True,
    ),
    ApiRoute(
        "POST",
        f"{P}/erase",
        "instructor",
        taking_out.erase_person,
        WithReason,
        after=taking_out.scrub,
        is_heavy=True,
    ),
    ApiRoute(
        "POST",
        "hub/backup",
        "operator",
        taking_out.note_backup,
        before=taking_out.pace_backups,
        after=taking_out.make_backup,
        is_heavy=True,
    ),
    ApiRoute("GET", f"{C}/platform/scores", "instructor", platform.scores),
    ApiRoute("POST", f"{C}/platform/scores", "instructor", platform.scores_again),
    ApiRoute("POST", f"{C}/platform/roster", "instructor", platform.platform_roster),
    ApiRoute("POST", f"{C}/platform/unbind", "instructor", platform.unbind_platform),
)
