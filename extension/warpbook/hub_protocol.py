"""What the course service and its clients tell one another: JSON over HTTP.

Clients ask, each with its own token; the service calls nobody. A result is made by the
grader's own code: nothing of a learner's process reaches the service. What the keeper
is answered is all that is to be so, so that either may begin anew.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: parts of the service's API, below its own address
LEARNERS, GRADERS, KEEPER, LTI = "api/v1/", "grader/v1/", "keeper/v1/", "lti/"
#: with this header the service marks its answers; a gateway before it does not
ANSWER_MARK = "Warpbook-Service"
#: more than any message of a grader, or of the keeper, has
GRADER_MESSAGE_BYTES = 8 << 20
KEEPER_MESSAGE_BYTES = 256 << 10
#: the exit status of a grader that the hub does not know, or not any more
REFUSED_STATUS = 3
#: more than any evidence of a result has
MOST_EVIDENCE_BYTES = 4 << 20
Stage = Literal["cpu", "gpu"]
#: what a database and a page can hold
Count = Annotated[int, Meta(ge=0, le=2**53)]
Id = Annotated[str, Meta(max_length=64)]
#: how a stage of grading ended: "right" goes on to a GPU, where speed is graded;
#: "undecided" is neither right nor wrong, because the checker could not tell
Verdict = Literal["right", "wrong", "undecided", "too busy"]
Text = Annotated[str, Meta(max_length=300)]
#: of a lease of a GPU
LEAST_MINUTES, MOST_MINUTES = 10, 30
Minutes = Annotated[int, Meta(ge=LEAST_MINUTES, le=MOST_MINUTES)]


#: asked about one submission, and choices of one question
MOST_QUESTIONS, MOST_CHOICES = 2, 8
MOST_QUESTION_TEXT = 1_000


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """Of a route that takes nothing."""


class Problem(Struct, frozen=True):
    """Why a request was refused."""

    error: str


#: what AI assistants of learners may do with a lab by warpbook's tools: nothing; see
#: and check it; anything
AiPolicy = Literal["off", "checking", "on"]
#: of one submission
MOST_AI_CALLS = 100


class AiCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A call of one of warpbook's tools by an AI assistant."""

    tool: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}\Z")]
    #: by the clock of who tells it, up to the year 2200
    at_ms: Annotated[int, Meta(ge=0, le=7_258_118_400_000)]
    #: of arguments and of answer; None: of a hand-in, which has no answer yet
    asked_bytes: Count
    answered_bytes: Count | None
    #: by the policy of the lab
    is_refused: bool = False


class AiLog(Struct, frozen=True, forbid_unknown_fields=True):
    """What AI assistants asked while a lab was open, as the learner's program tells."""

    #: about the lab, the newest first
    calls: Annotated[tuple[AiCall, ...], Meta(max_length=MOST_AI_CALLS)]
    #: about the lab, those that are left out included
    count: Count
    #: that named no lab
    others: Count


class Ratio(Struct, frozen=True):
    """A ratio that was measured, with the ends of its interval."""

    low: float
    middle: float
    high: float


class GradedFacts(Struct, frozen=True):
    """What marks are computed from."""

    verdict: Verdict
    #: the grader's own word for it, such as "passed" or "compile error"
    status: str
    #: in one sentence, for the learner
    message: str
    #: cases that are right, of how many
    right: Count
    of: Count
    #: what kind of mistake it is: equal kinds are equal mistakes; empty if none
    error_kind: str = ""
    is_speed_graded: bool = False
    #: time of the baseline over time taken
    of_baseline: Ratio | None = None
    #: time at the measured limit of the GPU over time taken
    of_limit: Ratio | None = None
    not_graded: tuple[str, ...] = ()
    #: for a person to look at; they take no points
    flags: tuple[str, ...] = ()


class Points(Struct, frozen=True):
    """What a result is worth."""

    points: float
    #: what could be had where it was graded: without a GPU, nothing for speed
    of: float
    #: what could be had with a GPU
    of_all: float


class OwnCourse(Struct, frozen=True):
    """A course that somebody is of."""

    id: str
    title: str
    role: str


class LabWindow(Struct, frozen=True):
    """When a lab takes submissions of a person, their extension included."""

    opens_ms: int
    due_ms: int
    closes_ms: int
    #: by how much outages of the hub have moved the due date
    extended_ms: int = 0
    #: after the due and the closing date: nobody is late for so long
    grace_ms: int = 0


class OwnLab(Struct, frozen=True):
    """A published lab, for one person."""

    id: str
    lab: str
    title: str
    language: str
    #: None for staff without a section of theirs
    window: LabWindow | None
    is_open: bool
    is_passed: bool
    is_withdrawn: bool
    is_team_work: bool
    late_percent_per_day: float
    #: None: as many as one likes
    attempts_left: int | None
    attempts: int
    #: its state, such as "graded" or "not handed in"; empty for who has no marks
    mark: str
    #: None unless graded
    points: float | None
    most_points: float
    #: points that were set by hand
    is_override: bool
    #: id of the submission that does
    counts: str | None
    late_hours: int
    penalty: float
    #: of learners, now
    ai_policy: AiPolicy


class LabAiPolicy(Struct, frozen=True):
    """What AI assistants of a learner may do with a lab now."""

    course: str
    lab: str
    ai_policy: AiPolicy


class OwnTotal(Struct, frozen=True):
    """What the marks of a learner add up to."""

    points: float
    most_points: float
    #: titles of labs that were left out as the lowest
    dropped: tuple[str, ...]
    #: how it is computed, a sentence each
    rules: tuple[str, ...]


class HandIn(Struct, frozen=True, forbid_unknown_fields=True):
    """A submission."""

    source: Annotated[str, Meta(max_length=200_000)]
    #: drawn by the client: the same one again gives the same receipt
    request: Id = ""
    #: put it in the place of one that waits
    replace: bool = False
    #: None: who hands in keeps none
    ai_log: AiLog | None = None


class SubmissionReceipt(Struct, frozen=True, omit_defaults=True):
    """What a learner gets for a submission; it is on the disk by then."""

    submission: str
    publication: str
    #: from 1, of this learner or team
    number: int
    #: when it arrived, by the server's clock: this decides lateness
    received_ms: int
    #: SHA-256 of the source in UTF-8
    source_digest: str
    #: hours after the learner's own due date that have begun
    late_hours: int
    #: of the hub, over all of this and whose it is: proves it without the database
    signature: str
    #: by how much outages of the hub have moved the due date
    extended_ms: int = 0


class Place(Struct, frozen=True):
    """Where a submission is in the queue."""

    stage: str
    #: jobs that are before it; 0: it runs, or is next
    before: int
    #: None where no grader could take it now
    eta_s: float | None


class ResultView(Struct, frozen=True):
    """A result, as its own learner sees it."""

    job: str
    run: int
    stage: str
    received_ms: int
    facts: GradedFacts
    #: None while staff have yet to give them by the lab's rubric
    points: Points | None


class CommentView(Struct, frozen=True):
    """What staff say of a line of a source; of all of it where the line is 0."""

    line: int
    note: str


class RubricRowView(Struct, frozen=True):
    """A row of a lab's rubric, with what a submission was given for it."""

    title: str
    #: None where nobody has given any
    points: float | None
    #: at most
    of: float


class SubmissionState(Struct, frozen=True):
    """How it stands with a submission."""

    receipt: SubmissionReceipt
    state: str
    stage: str
    is_provisional: bool
    place: Place | None
    result: ResultView | None
    #: both are empty until the lab's marks are released
    comments: tuple[CommentView, ...] = ()
    rubric: tuple[RubricRowView, ...] = ()


class CodeQuestionView(Struct, frozen=True):
    """A question on a learner's own source."""

    number: int
    ask: str
    choices: tuple[str, ...]
    #: the place of the learner's choice, from 0; None: not answered
    choice: int | None
    answered_ms: int | None
    #: the place of the right one; of learners None until they have answered
    right: int | None
    #: what the engine says of it
    because: str


class CodeAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """A learner's choice, which stays."""

    number: Count
    choice: Count


class Reference(Struct, frozen=True):
    """The reference of a lab; empty where the hub has none yet."""

    reference: str


class OwnLease(Struct, frozen=True):
    """How it stands with somebody's lease."""

    #: "none", "waiting", "held", "ending"
    state: str
    gpu: str = ""
    name: str = ""
    left_s: int = 0
    #: in the line, from 1; 0 if not waiting
    place: int = 0
    #: None: nobody can tell
    eta_s: int | None = None
    #: what the holder should know now, or how the last lease ended
    note: str = ""


class LeaseLonger(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a lease is to go on."""

    minutes: Minutes


class LeaseFor(LeaseLonger, frozen=True):
    """A lease of a GPU that somebody asks for."""

    #: the name of a GPU; empty for any
    model: Annotated[str, Meta(max_length=100)] = ""


class Device(Struct, frozen=True):
    """A GPU that a grader has for itself, or several that a job has at once."""

    #: of several: theirs, with commas
    uuid: str
    name: str


class GradableLab(Struct, frozen=True):
    """A lab that a grader has, or why it can't grade it."""

    lab: Annotated[str, Meta(max_length=41)]
    #: SHA-256 of what decides a grade; empty where it can't be read
    digest: Id
    #: empty if it can be graded
    problem: Text = ""


class Hello(Struct, frozen=True):
    """What a grader has; as its first message also that it holds no lease."""

    cpu_slots: Count
    devices: tuple[Device, ...] = ()
    #: None: it does not know
    labs: Annotated[tuple[GradableLab, ...], Meta(max_length=2000)] | None = None


class Welcome(Struct, frozen=True):
    """How the hub wants to be asked."""

    grader: str
    #: a lease ends so long after the last heartbeat
    lease_s: float
    heartbeat_s: float
    #: between two requests for work
    poll_s: float


class WorkRequest(Struct, frozen=True):
    """What a grader has room for."""

    free_cpu_slots: Count
    #: UUIDs
    free_devices: tuple[str, ...] = ()


class JobOrder(Struct, frozen=True):
    """One job that the grader now has a lease of."""

    job: str
    fence: int
    stage: Stage
    lab: str
    #: what the result must be of; empty if any will do
    lab_digest: str
    source: str
    source_digest: str
    seed: int
    #: UUID of the GPU that it has for itself; empty in the stage "cpu"
    device: str = ""
    #: the hub has no reference of this lab yet
    wants_reference: bool = False
    #: in the queue, until this lease
    waited_ms: Count = 0
    #: after a pass questions on the source are drawn
    asks_questions: bool = False


class Work(Struct, frozen=True):
    """The jobs that the grader is given."""

    jobs: tuple[JobOrder, ...] = ()
    #: it shall finish what it has, and ends then
    is_draining: bool = False


class LeaseName(Struct, frozen=True):
    """A lease: the job, and which of its leases."""

    job: Id
    fence: Count


class Heartbeat(Struct, frozen=True):
    """All that the grader works on."""

    leases: tuple[LeaseName, ...]
    #: where that is not what it said last
    has: Hello | None = None


class HeartbeatAnswer(Struct, frozen=True):
    """What became of these."""

    #: cancelled, replaced, or given to another grader: work on them is to end
    lost: tuple[str, ...] = ()
    is_draining: bool = False


class CodeQuestion(Struct, frozen=True):
    """A question on a source that passed, with its answer, which the hub keeps."""

    ask: Annotated[str, Meta(max_length=MOST_QUESTION_TEXT)]
    choices: Annotated[tuple[Text, ...], Meta(min_length=2, max_length=MOST_CHOICES)]
    #: the place of the right one, from 0
    right: Count
    #: what the engine says of it
    because: Annotated[str, Meta(max_length=MOST_QUESTION_TEXT)]


class JobResult(Struct, frozen=True):
    """A job was done."""

    lease: LeaseName
    facts: GradedFacts
    #: SHA-256 of what decides a grade of the lab, as the grader has it
    lab_digest: str
    #: SHA-256 of the source that was graded
    source_digest: str
    took_ms: Count
    #: JSON for people: the card, the whole result
    evidence: str = "{}"
    #: how long it had a GPU, and what that took
    gpu_ms: Count = 0
    energy_mj: Count | None = None
    #: the lab's reference, where the order wants it
    reference: str = ""
    questions: Annotated[tuple[CodeQuestion, ...], Meta(max_length=MOST_QUESTIONS)] = ()


class Receipt(Struct, frozen=True):
    """Whether a result counts."""

    is_accepted: bool
    reason: str = ""


#: the first three are of the process that graded, and count towards parking; "can't
#: grade" parks at once, since no other try would change it
ReleaseReason = Literal[
    "crashed", "timed out", "out of memory", "returned", "can't grade"
]


class Release(Struct, frozen=True):
    """A job is given back."""

    lease: LeaseName
    reason: ReleaseReason
    message: str = ""


class Released(Struct, frozen=True):
    """A job given back: queued again, parked for a person, or another's meanwhile."""

    state: Literal["queued", "parked", "lost"]


class KeptGpu(Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU as the keeper finds it."""

    #: its UUID, or the path of a device that NVML does not know
    gpu: Text
    name: Text
    #: why it can't be leased; empty if it can
    problem: Text
    #: nobody who leases GPUs may open it, or has it open
    is_clear: bool
    #: the holder's processes work on it; None where the driver does not tell
    is_busy: bool | None
    #: since the driver was loaded, in millijoules
    energy_mj: Count | None


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """What the keeper finds."""

    node: Text
    gpus: Annotated[tuple[KeptGpu, ...], Meta(max_length=64)]
    #: without work for so long a lease ends
    idle_end_ms: Count


class Grant(Struct, frozen=True):
    """Who may open a GPU, and for how long."""

    lease: str
    gpu: str
    username: str
    left_ms: int


class Orders(Struct, frozen=True):
    """All grants there are; any other is to be revoked."""

    grants: tuple[Grant, ...]


class ServerRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """JupyterHub starts a server that asks for a GPU."""

    course: Text
    username: Text
    minutes: Minutes
