"""Results of submissions, as graders gave them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.grader_protocol import GradedFacts
from warpbook.hub.rules.points import Points

#: "waits" and "runs" in stage "cpu" or "gpu"; "parked": a person has to look
State = Literal["waits", "runs", "graded", "parked", "replaced", "cancelled"]


class Result(Struct, frozen=True):
    """An accepted result of one stage."""

    job: str
    submission: str
    run: int
    stage: str
    received_ms: int
    facts: GradedFacts
    points: Points
    lab_digest: str
    #: JSON for people; hostile, as it quotes the source
    evidence: str
    gpu_ms: int
    energy_mj: int | None


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
    raise NotImplementedError


def results(connection: Connection, submission_id: str) -> list[Result]:
    """Give all results of a submission, regrades included, the first first."""
    raise NotImplementedError
