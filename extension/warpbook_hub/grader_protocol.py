"""What a grader and the hub say to each other: JSON over HTTP, asked by the grader.

A grader posts to `<hub>/grader/v1/<what>` with `Authorization: Bearer <its token>`.
The hub never calls a grader, and nothing of a learner's process reaches the hub: what a
result says is made by the grader's own code.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: the part of the path behind the service's own
PREFIX = "/grader/v1/"
#: more than any message of a grader has
MOST_MESSAGE_BYTES = 8 << 20
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


class Device(Struct, frozen=True):
    """A GPU that a grader has for itself, or several that a job has at once."""

    #: of several: theirs, with commas
    uuid: str
    name: str


class Hello(Struct, frozen=True):
    """What a grader has; as its first message also that it holds no lease."""

    cpu_slots: Count
    devices: tuple[Device, ...] = ()


class Welcome(Struct, frozen=True):
    """How the hub wants to be asked."""

    grader: str
    #: a lease ends so long after the last heartbeat
    lease_s: float
    heartbeat_s: float
    #: between two requests for work where there was none
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
    #: whether a GPU has judged its speed
    is_speed_graded: bool = False
    #: time of the baseline over time taken
    of_baseline: Ratio | None = None
    #: time at the measured limit of the GPU over time taken
    of_limit: Ratio | None = None
    #: why something is not graded
    not_graded: tuple[str, ...] = ()
    #: for a person to look at; they take no points
    flags: tuple[str, ...] = ()


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


class Receipt(Struct, frozen=True):
    """Whether a result counts."""

    is_accepted: bool
    reason: str = ""


#: why a grader gives a job back without a result: "crashed", "timed out" and "out of
#: memory" are of the process that graded it, and count towards parking; "returned"
#: counts not; "can't grade" parks it at once, since no other try would change it
ReleaseReason = Literal[
    "crashed", "timed out", "out of memory", "returned", "can't grade"
]


class Release(Struct, frozen=True):
    """A job is given back."""

    lease: LeaseName
    reason: ReleaseReason
    #: for instructors
    message: str = ""


class Released(Struct, frozen=True):
    """What became of a job that was given back."""

    #: "queued" again, "parked" for a person, or "lost": another has it
    state: Literal["queued", "parked", "lost"]


class Problem(Struct, frozen=True):
    """Why a request was refused."""

    error: str
