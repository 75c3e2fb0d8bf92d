"""All routes of the JSON API, with who may ask for each."""

from __future__ import annotations

from functools import partial

from warpbook.hub_protocol import HandIn, LeaseFor, LeaseLonger
from warpbook_hub.service.api import (
    competition,
    exports,
    learner,
    leases,
    notices,
    queue,
    staff,
)
from warpbook_hub.service.parameters import (
    AppealAnswer,
    AppealNote,
    CompetitionToOpen,
    CourseSettings,
    ExcuseFor,
    ExtensionFor,
    FinalToStart,
    GraderName,
    GradesQuery,
    LabToPublish,
    NoticesRead,
    NoticesWanted,
    PointsFor,
    Pseudonym,
    Release,
    RosterFile,
    RosterGroup,
    SessionToCancel,
    SessionToReserve,
    ShownReceipt,
    StaffMember,
    TotalRules,
    WithReason,
)
from warpbook_hub.service.roster_group import ask_group
from warpbook_hub.service.route import ApiRoute

_SOURCE_BYTES = 2 << 20
_ROSTER_BYTES = 6 << 20
get, post = partial(ApiRoute, "GET"), partial(ApiRoute, "POST")
C = "courses/{course}"
L = f"{C}/labs/{{lab}}"
S = f"{C}/submissions/{{submission}}"
J = f"{C}/jobs/{{job}}"
G = "hub/graders/{grader}"
P = f"{C}/people/{{person}}"

API_ROUTES: tuple[ApiRoute, ...] = (
    get("courses", "person", learner.own_courses),
    get("notices", "person", notices.own_notices),
    post("notices/read", "person", notices.read, NoticesRead),
    post("notices/choice", "person", notices.choose, NoticesWanted),
    get(f"{C}/labs", "member", learner.own_labs),
    get(f"{C}/total", "member", learner.own_total),
    post(f"{C}/totals", "instructor", staff.change_totals, TotalRules),
    get(f"{L}/submissions", "member", learner.submission_list),
    post(f"{L}/submissions", "member", learner.hand_in, HandIn, 201, _SOURCE_BYTES),
    get(f"{L}/reference", "member", learner.lab_reference),
    get(S, "member", learner.submission_state),
    get(f"{S}/source", "member", learner.source),
    get(f"{S}/evidence", "member", learner.evidence),
    post(f"{S}/regrade", "staff", staff.regrade_one, WithReason),
    post(
        f"{C}/receipts/check",
        "instructor",
        staff.check_receipt,
        ShownReceipt,
        only_reads=True,
    ),
    post(f"{J}/appeal", "member", learner.make_appeal, AppealNote, 201),
    post(f"{C}/appeals/{{appeal}}/answer", "staff", staff.answer, AppealAnswer),
    post(
        f"{C}/roster",
        "instructor",
        staff.roster,
        RosterFile,
        most_body_bytes=_ROSTER_BYTES,
        before=staff.read_roster_file,
    ),
    post(
        f"{C}/roster/group",
        "instructor",
        staff.group_roster,
        RosterGroup,
        before=ask_group,
    ),
    post(f"{C}/staff", "instructor", staff.staff_member, StaffMember),
    post(f"{P}/remove-staff", "instructor", staff.former_staff_member),
    post(f"{C}/settings", "instructor", staff.course_settings, CourseSettings),
    post(f"{C}/labs", "instructor", staff.publish_lab, LabToPublish),
    post(f"{L}/withdraw", "instructor", staff.withdraw_lab, WithReason),
    post(f"{L}/people/{{person}}/extension", "staff", staff.extend_for, ExtensionFor),
    post(f"{L}/people/{{person}}/points", "staff", staff.set_points, PointsFor),
    post(f"{L}/people/{{person}}/excuse", "staff", staff.excuse_person, ExcuseFor),
    post(f"{L}/release", "instructor", staff.release_marks, Release),
    post(
        f"{L}/similarity",
        "instructor",
        exports.works_to_compare,
        after=exports.compare,
        is_heavy=True,
        only_reads=True,
    ),
    get(f"{L}/competition", "member", competition.lab_board),
    post(
        f"{L}/competition",
        "instructor",
        competition.open_competition,
        CompetitionToOpen,
    ),
    post(f"{L}/competition/join", "member", competition.join, Pseudonym),
    post(f"{L}/competition/leave", "member", competition.leave),
    post(f"{L}/competition/final", "instructor", competition.start_final, FinalToStart),
    post(f"{L}/competition/end", "instructor", competition.end_competition),
    get(f"{C}/gpus", "member", leases.own_lease),
    post(f"{C}/gpus/take", "member", leases.take, LeaseFor),
    post(f"{C}/gpus/extend", "member", leases.extend, LeaseLonger),
    post(f"{C}/gpus/return", "member", leases.give_back),
    post(f"{C}/gpus/sessions", "staff", leases.reserve, SessionToReserve),
    post(f"{C}/gpus/sessions/cancel", "staff", leases.cancel, SessionToCancel),
    get(f"{C}/queue", "instructor", queue.queue_list),
    post(f"{C}/queue/pause", "instructor", queue.pause, WithReason),
    post(f"{C}/queue/resume", "instructor", queue.resume),
    post(f"{J}/cancel", "staff", queue.cancel_job, WithReason),
    post(f"{J}/retry", "staff", queue.retry_job),
    get("hub/queue", "operator", queue.whole_queue),
    post("hub/queue/pause", "operator", queue.pause_all, WithReason),
    post("hub/queue/resume", "operator", queue.resume_all),
    post("hub/jobs/{job}/raise", "operator", queue.raise_job),
    post("hub/graders", "operator", queue.register_grader, GraderName),
    post(f"{G}/drain", "operator", queue.drain_grader),
    post(f"{G}/activate", "operator", queue.activate_grader),
    post(f"{G}/retire", "operator", queue.retire_grader),
    get(
        f"{C}/exports/grades",
        "instructor",
        exports.all_grades,
        GradesQuery,
        is_heavy=True,
    ),
    get(f"{C}/exports/own", "member", exports.own_grades, GradesQuery),
    get(f"{C}/exports/records", "instructor", exports.records, is_heavy=True),
    get(f"{C}/exports/sources", "instructor", exports.sources, is_heavy=True),
    post(
        f"{P}/erase",
        "instructor",
        exports.erase_person,
        WithReason,
        after=exports.scrub,
        is_heavy=True,
    ),
    post(
        "hub/backup",
        "operator",
        exports.note_backup,
        before=exports.pace_backups,
        after=exports.make_backup,
        is_heavy=True,
    ),
    get(f"{C}/platform/scores", "instructor", staff.scores),
    post(f"{C}/platform/scores", "instructor", staff.scores_again),
    post(f"{C}/platform/roster", "instructor", staff.platform_roster),
    post(f"{C}/platform/unbind", "instructor", staff.unbind_platform),
)
