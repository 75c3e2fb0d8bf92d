"""How far a person is with each lab, read of their file of submissions.

It needs neither SQLAlchemy nor NumPy: the list of labs is told in a moment.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from warpbook_labs.errors import StoreError
from warpbook_monitors.data_folder import data_folder

#: statuses of a result that another try may change, with nothing else changed
UNDECIDED = ("too noisy to tell", "too busy")
_WAIT_S = 10.0
#: results that nobody but us has written, as far as their types tell
_READABLE = """
    typeof(passed) = 'integer' AND typeof("right") = 'integer'
    AND typeof("of") = 'integer' AND typeof(graded_ms) = 'integer'
    AND typeof(result) = 'text'
    AND CASE WHEN json_valid(result) THEN json_type(result) ELSE '' END = 'object'
"""
_MARKS = f"""
    SELECT lab, submission, passed, "right", "of", json_extract(result, '$.status')
    FROM results JOIN submissions ON submissions.id = results.submission
    WHERE {_READABLE} ORDER BY submission, results.id
"""
_DAMAGED = f"""
    SELECT id, submission FROM results WHERE NOT ({_READABLE}) ORDER BY id LIMIT 20
"""


class Mark(Struct, frozen=True):
    """How a submission went, in short."""

    submission: int
    passed: bool
    right: int
    of: int


FILE_NAME = "labs.db"


class Progress(Struct, frozen=True):
    """How far a person is with a lab."""

    #: submissions, graded or not
    attempts: int = 0
    hints: int = 0
    best: Mark | None = None
    last: Mark | None = None


def submissions_file() -> Path:
    """Name the file, which need not be there yet."""
    return data_folder() / FILE_NAME


def read_progress(path: Path) -> dict[str, Progress]:
    """Tell how far the person is, by the labs that they began.

    Raises:
        StoreError: the file can't be read.
    """
    with _opened(path) as connection:
        attempts: dict[str, int] = dict(
            connection.execute(
                "SELECT CAST(lab AS TEXT), count(*) FROM submissions GROUP BY lab"
            )
        )
        hints: dict[str, int] = dict(
            connection.execute("SELECT lab, opened FROM hints")
        )
        by_lab: dict[str, dict[int, Mark]] = {}
        for lab, number, passed, right, of, status in connection.execute(_MARKS):
            of_lab = by_lab.setdefault(lab, {})
            # of several gradings of a submission the last that decided counts
            if status not in UNDECIDED or number not in of_lab:
                of_lab[number] = Mark(number, bool(passed), right, of)
    return {
        lab: Progress(
            attempts.get(lab, 0), hints.get(lab, 0), *_best_and_last(by_lab, lab)
        )
        for lab in sorted(attempts.keys() | hints.keys())
    }


def damaged_results(path: Path) -> tuple[str, ...]:
    """Say of each result that can't be read that it is left out, in a line.

    Raises:
        StoreError: the file can't be read.
    """
    with _opened(path) as connection:
        rows = connection.execute(_DAMAGED).fetchall()
    return tuple(
        f"Result {number} of submission {submission} is damaged and left out; "
        f"grade it again: warpbook labs regrade {submission}"
        for number, submission in rows
    )


def store_error(path: Path, problem: Exception) -> StoreError:
    """Say in words why SQLite can't use the file, and what to do."""
    words = str(getattr(problem, "orig", problem))
    if "locked" in words or "busy" in words:
        reason = "another program holds it: end that, and try again."
    elif "malformed" in words or "not a database" in words or "no such" in words:
        reason = (
            f"the file is damaged ({words}). Move it away, with those of its name that "
            "end in -wal and -shm; a new one is begun then."
        )
    else:
        reason = f"{words}."
    return StoreError(f"{path}: {reason}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_WAIT_S)) as connection:
            yield connection
    except sqlite3.Error as problem:
        raise store_error(path, problem) from None


def _best_and_last(
    by_lab: dict[str, dict[int, Mark]], lab: str
) -> tuple[Mark | None, Mark | None]:
    marks = list(by_lab.get(lab, {}).values())
    if not marks:
        return None, None
    best = max(marks, key=lambda mark: (mark.passed, mark.right / max(mark.of, 1)))
    return best, marks[-1]
