"""What a request may hold: each route declares it, and it is checked here only."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.json import Decoder

from warpbook.hub_protocol import AiPolicy, Id
from warpbook_hub.competition.finals import USUAL_ROUNDS
from warpbook_hub.errors import BadField, BadRequest
from warpbook_hub.service.field_problem import field_problem
from warpbook_hub.work.bulk_actions import Action
from warpbook_monitors.budget import NotJson, decode_json

#: what a body has at most, unless its route says more
MOST_BODY_BYTES = 64 << 10
Name = Annotated[str, Meta(max_length=100)]
Note = Annotated[str, Meta(max_length=8_000)]
TimeMs = Annotated[int, Meta(ge=0, le=7_258_118_400_000)]
Reason = Annotated[str, Meta(max_length=8_000)]
Whole = Annotated[int, Meta(ge=0, le=1_000_000)]
Number = Annotated[float, Meta(ge=0, le=1_000_000)]
People = Annotated[tuple[Id, ...], Meta(max_length=5_000)]

Value = TypeVar("Value", bound=Struct)


class WithReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why something is changed."""

    reason: Reason


class ClassQuery(Struct, frozen=True):
    """Which part of the class is shown."""

    lab: Id = ""
    section: Name = ""


class SectionQuery(Struct, frozen=True):
    """Which learners are shown; "" is all."""

    section: Name = ""


class LogQuery(Struct, frozen=True):
    """Which entries of the audit log are shown."""

    before: Whole = 0
    subject: Id = ""


class PairQuery(Struct, frozen=True):
    """Which two submissions are compared."""

    first: Id
    second: Id


class LabQuery(Struct, frozen=True):
    """Which lab of the catalogue is meant; "" is none."""

    catalogue: Annotated[str, Meta(max_length=41)] = ""


class AppealNote(Struct, frozen=True, forbid_unknown_fields=True):
    """What a learner says of a result."""

    note: Note


class AppealAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """What staff say to it."""

    decision: Literal["upheld", "dismissed"]
    answer: Note
    #: that the decision sets; None: it sets none
    points: Number | None = None
    is_bonus: bool = False
    is_regraded: bool = False


class NoticesRead(Struct, frozen=True, forbid_unknown_fields=True):
    """Up to when somebody has read their notices."""

    up_to_ms: TimeMs


class NoticesWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody wants to be mailed, and where."""

    mail: Literal["off", "digest", "once"]
    address: Name = ""


class NextTerm(Struct, frozen=True, forbid_unknown_fields=True):
    """A course that is begun like another."""

    id: Id
    title: Name
    days: Annotated[int, Meta(ge=-4_000, le=4_000)]
    zone: Name
    is_preview: bool = False


class ShownReceipt(Struct, frozen=True, forbid_unknown_fields=True):
    """A receipt that somebody shows, as text."""

    username: Name
    receipt: Annotated[str, Meta(max_length=4_000)]


class RosterFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A roster: a file as it is, in base64, or its lines as text."""

    file: Annotated[bytes, Meta(max_length=2 << 20)] = b""
    csv: Annotated[str, Meta(max_length=2 << 20)] = ""
    #: that a person has chosen; empty: it is detected
    encoding: Name = ""
    #: by field the column that a person has chosen; empty: none
    columns: Annotated[dict[Name, Name], Meta(max_length=20)] = {}
    is_preview: bool = False


class RosterGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group of the hub, as a roster."""

    group: Name
    section: Name = ""
    is_preview: bool = False


class StaffMember(Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody who becomes staff."""

    username: Name
    role: Literal["assistant", "instructor"]
    section: Name = "main"


class CourseSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A course's settings."""

    title: Name
    late_budget_h: Whole
    timed_runs_per_hour: Whole
    appeal_window_h: Whole
    grace_min: Whole = 0
    #: None: as it is
    ai_policy: AiPolicy | None = None


class WindowOf(Struct, frozen=True, forbid_unknown_fields=True):
    """When a lab takes submissions; of all sections that are not named, if ""."""

    opens_ms: TimeMs
    due_ms: TimeMs
    closes_ms: TimeMs
    section: Name = ""


class Level(Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold with its points."""

    measure: Literal["right", "of_baseline", "of_limit"]
    least: Number
    points: Number


class LabToPublish(Struct, frozen=True, forbid_unknown_fields=True):
    """How a lab is published."""

    lab: Annotated[str, Meta(max_length=41)]
    title: Name
    windows: Annotated[tuple[WindowOf, ...], Meta(max_length=100)]
    thresholds: Annotated[tuple[Level, ...], Meta(max_length=30)]
    is_team_work: bool = False
    late_percent_per_day: Number = 100.0
    #: 0: as many as one likes
    most_attempts: Whole = 0
    lab_digest: Id = ""
    #: "": as the course has it
    ai_policy: AiPolicy | Literal[""] = ""
    asks_questions: bool = False


class VersionToPublish(Struct, frozen=True, forbid_unknown_fields=True):
    """Which version of a lab is published, and what is graded again."""

    #: that the page has shown; empty where graders have not said theirs
    digest: Id
    #: "waiting": what is parked; what waits is graded in any case
    again: Literal["nothing", "waiting", "all"] = "nothing"


class ExtensionFor(Struct, frozen=True, forbid_unknown_fields=True):
    """Other dates of one learner."""

    due_ms: TimeMs
    closes_ms: TimeMs
    reason: Reason


class PointsFor(Struct, frozen=True, forbid_unknown_fields=True):
    """Points that are set; None takes them back."""

    points: Number | None
    reason: Reason
    #: they may be more than the lab's maximum
    is_bonus: bool = False


class ExcuseFor(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a lab counts for a learner."""

    reason: Reason
    is_excused: bool = True


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether learners see marks and feedback of a lab."""

    is_hidden: bool


class WeightOf(Struct, frozen=True, forbid_unknown_fields=True):
    """How a lab counts in totals; None: as much as its points."""

    lab: Id
    weight: Number | None = None
    is_bonus: bool = False


class TotalRules(Struct, frozen=True, forbid_unknown_fields=True):
    """How totals of a course are computed."""

    drop_lowest: Whole
    labs: Annotated[tuple[WeightOf, ...], Meta(max_length=1000)] = ()


class GradesQuery(Struct, frozen=True):
    """Which file of marks is asked for."""

    layout: Literal["nbgrader", "totals", "json"] = "nbgrader"
    #: of CSV: begin with a mark, by which spreadsheets know UTF-8
    mark: bool = True


class CellsOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to a selection of the gradebook."""

    action: Action
    #: learners, by lab; None: all of the lab
    cells: Annotated[dict[Id, People | None], Meta(max_length=200)]
    reason: Reason = ""
    #: drawn by the client: a repeated order is done once
    request: Id = ""
    due_ms: TimeMs | None = None
    is_preview: bool = False


class OrderToUndo(Struct, frozen=True, forbid_unknown_fields=True):
    """An order that is taken back."""

    request: Id


class CommentOn(Struct, frozen=True, forbid_unknown_fields=True):
    """What staff say of a line of a source, or of all of it."""

    note: Note
    line: Whole = 0


class CommentToRemove(Struct, frozen=True, forbid_unknown_fields=True):
    """A comment that is taken away."""

    comment: Id


class RowOf(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a rubric."""

    title: Name
    points: Number


class RubricToSet(Struct, frozen=True, forbid_unknown_fields=True):
    """The rows of a lab's rubric."""

    rows: Annotated[tuple[RowOf, ...], Meta(max_length=30)]
    replaces: bool = False


class RowPoints(Struct, frozen=True, forbid_unknown_fields=True):
    """Points for a row of a rubric; None takes them back."""

    title: Name
    points: Number | None


class RubricPoints(Struct, frozen=True, forbid_unknown_fields=True):
    """Points for the rows of a rubric."""

    rows: Annotated[tuple[RowPoints, ...], Meta(max_length=30)]


class GraderName(Struct, frozen=True, forbid_unknown_fields=True):
    """A grader that is made known."""

    name: Name


class SessionToReserve(Struct, frozen=True, forbid_unknown_fields=True):
    """GPUs that a course is to have for a time."""

    title: Name
    gpus: Annotated[int, Meta(ge=1, le=1000)]
    starts_ms: TimeMs
    ends_ms: TimeMs


class CompetitionToOpen(Struct, frozen=True, forbid_unknown_fields=True):
    """When the board of a competition is frozen; None: a day before the lab is due."""

    freezes_ms: TimeMs | None = None


class Pseudonym(Struct, frozen=True, forbid_unknown_fields=True):
    """How somebody wants to be called on a board."""

    pseudonym: Name


class FinalToStart(Struct, frozen=True, forbid_unknown_fields=True):
    """Where everybody's best is measured again, and how often."""

    grader: Id
    #: the UUID of its GPU; of several at once, theirs with commas
    device: Annotated[str, Meta(max_length=4_000)]
    rounds: Whole = USUAL_ROUNDS


class SessionToCancel(Struct, frozen=True, forbid_unknown_fields=True):
    """A session that does not take place."""

    session: Id


def read_query(arguments: dict[str, list[bytes]], kind: type[Value]) -> Value:
    """Read a query; what is not declared is passed over.

    Raises:
        BadRequest: with what is wrong.
    """
    texts: dict[str, str] = {}
    for name in kind.__struct_encode_fields__:
        values = arguments.get(name, [])
        if len(values) > 1:
            raise BadRequest(f"{name} is given more than once.")
        if values:
            try:
                texts[name] = values[0].decode()
            except UnicodeDecodeError:
                raise BadRequest(f"{name} is not UTF-8.") from None
    try:
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError as problem:
        raise _bad_field(str(problem)) from None


def read_body(body: bytes | str, kind: type[Value]) -> Value:
    """Read a body of JSON; an empty one is an empty object.

    Raises:
        BadRequest: with what is wrong.
    """
    try:
        return decode_json(body or b"{}", Decoder(kind))
    except NotJson as problem:
        raise _bad_field(str(problem)) from None


def _bad_field(problem: str) -> BadField:
    field, words = field_problem(problem)
    return BadField(f"This can't be taken. {words}.", field)
