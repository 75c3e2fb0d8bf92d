"""What learners hand in: kept, and acknowledged with a receipt."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection


class SubmissionReceipt(Struct, frozen=True):
    """What a learner gets for a submission; it is on the disk by then."""

    submission: str
    publication: str
    #: 1, 2, ... of this learner or team
    number: int
    #: the server's time, which decides lateness
    received_ms: int
    #: SHA-256 of the source in UTF-8
    source_digest: str
    #: hours after the learner's own due date that have begun
    late_hours: int
    #: of the hub, over all of this: it can be proven after the database is lost
    signature: str


class Submission(Struct, frozen=True):
    """What was handed in."""

    id: str
    publication: str
    person: str
    #: whose work it is
    members: tuple[str, ...]
    number: int
    received_ms: int
    source_digest: str
    source: str
    is_replaced: bool


def receive(
    connection: Connection,
    now_ms: int,
    publication_id: str,
    person: str,
    source: str,
    request: str = "",
    replace: bool = False,
) -> SubmissionReceipt:
    """Keep a submission and put it into the queue.

    Args:
        connection: of a transaction; nothing is acknowledged before it is committed.
        now_ms: the server's time.
        publication_id: the lab.
        person: who submits it, for themselves or their team.
        source: what they wrote.
        request: drawn by the client; the same one again gives the same receipt.
        replace: put it in the place of a submission that still waits.

    Raises:
        BadRequest: the source is no text that a grader could take.
        NotFound: there is no such lab for them.
        NotOpen: the lab takes no submissions from them now.
        NoAttemptLeft: they have used all attempts.
        StillPending: one waits already, and `replace` is not asked.
        Conflict: `request` was used for another source or lab.
    """
    raise NotImplementedError


def receipt(connection: Connection, submission_id: str) -> SubmissionReceipt:
    """Give the receipt of a submission once more.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def is_genuine(connection: Connection, shown: SubmissionReceipt) -> bool:
    """Whether this hub wrote a receipt, also where the submission is lost."""
    raise NotImplementedError


def submission(connection: Connection, submission_id: str) -> Submission:
    """Give what was handed in; who may see it is asked of `rules.visibility`.

    Raises:
        NotFound: there is none.
    """
    raise NotImplementedError


def submissions_of(
    connection: Connection, publication_id: str, person: str
) -> list[Submission]:
    """Give all that a learner and their team handed in for a lab, the first first."""
    raise NotImplementedError


def section_of(connection: Connection, submission_id: str) -> str:
    """Give the section of who submitted it.

    Raises:
        NotFound: there is no such submission.
    """
    raise NotImplementedError
