"""The class as an instructor sees it: who is where, and who is stuck."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection

from warpbook.hub.rules.stuck import StuckReason


class LabState(Struct, frozen=True):
    """How far a learner is with a lab."""

    publication: str
    #: "nothing", "waits", "runs", "parked", "tried" or "passed"
    state: str
    attempts: int
    #: share of cases that are right, of the best
    best_right: float
    #: of the last result; empty if it passed, or there is none
    last_error_kind: str
    last_received_ms: int | None
    gpu_s: float
    energy_j: float
    stuck: StuckReason | None


class ClassRow(Struct, frozen=True):
    """A learner, with all labs."""

    person: str
    username: str
    name: str
    section: str
    team: str
    labs: tuple[LabState, ...]


def class_rows(
    connection: Connection, now_ms: int, course_id: str, section: str = ""
) -> list[ClassRow]:
    """Give each learner of a course or a section who is on the roster."""
    raise NotImplementedError
