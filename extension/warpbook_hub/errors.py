"""What the core refuses, as types that a service turns into an answer.

Each has the HTTP status that fits; its message says what to do.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class HubError(Exception):
    """Something can't be done; the message is for a person."""

    http_status: ClassVar[int] = 400


class BadRequest(HubError):
    """What was sent can't be used as it is."""

    http_status = 400


class BadField(BadRequest):
    """A field of a request can't be used as it is."""

    def __init__(self, words: str, field: str) -> None:
        super().__init__(words)
        #: such as `windows[0].due_ms`; empty where it is of none
        self.field = field


class Forbidden(HubError):
    """The person may not do this."""

    http_status = 403


class NotFound(HubError):
    """There is no such thing, or the person may not know of it."""

    http_status = 404


class Conflict(HubError):
    """It does not fit what is there already."""

    http_status = 409


class NotOpen(Forbidden):
    """The lab takes no submissions from this person now."""


class NoAttemptLeft(Forbidden):
    """The person, or their team, has used all attempts of the lab."""


class StillPending(Conflict):
    """A submission of this lab waits in the queue; a newer one may replace it."""

    def __init__(self, submission: str) -> None:
        super().__init__(
            f"Submission {submission} of this lab still waits in the queue. Submit "
            "with `replace` to put this one in its place."
        )
        self.submission = submission


class TooManyRequests(HubError):
    """The person asks more often than the course allows."""

    http_status = 429


class DatabaseUnfit(HubError):
    """The database can't be opened; the message says why and what to do."""

    http_status = 503


class DatabaseBusy(HubError):
    """Another program holds the database; nothing was written."""

    http_status = 503


class NoRoom(HubError):
    """The disk is full: nothing was written, and nothing is acknowledged."""

    http_status = 507


class RosterProblem(Struct, frozen=True):
    """What is wrong with a line of a roster."""

    #: counted from 1, with the header
    line: int
    message: str


class BadRoster(BadRequest):
    """A roster can't be imported; nothing of it was."""

    def __init__(self, problems: tuple[RosterProblem, ...]) -> None:
        super().__init__(
            "\n".join(f"line {problem.line}: {problem.message}" for problem in problems)
        )
        self.problems = problems
