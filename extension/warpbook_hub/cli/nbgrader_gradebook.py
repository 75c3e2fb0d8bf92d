"""Reads the gradebook of an nbgrader course: a file that may be anybody's.

Only its tables are read, by names and columns that are written here. No view, trigger,
function or computed column of the file is run. Rows, texts and time are bounded.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from warpbook_hub.course.nbgrader_course import (
    NbgraderAssignment,
    NbgraderCourse,
    NbgraderMark,
    NbgraderStudent,
)

_TABLES = {
    "student": ("id", "first_name", "last_name", "email"),
    "assignment": ("id", "name", "duedate"),
    "notebook": ("id", "assignment_id"),
    "base_cell": ("id", "name", "notebook_id"),
    "grade_cells": ("id", "max_score"),
    "task_cells": ("id", "max_score"),
    "solution_cells": ("id",),
    "submitted_assignment": (
        *("id", "assignment_id", "student_id", "timestamp", "extension"),
    ),
    "submitted_notebook": ("id", "assignment_id", "late_submission_penalty"),
    "grade": (
        *("notebook_id", "cell_id", "auto_score", "manual_score", "extra_credit"),
        "needs_manual_grade",
    ),
}
_MOST_BYTES = 1 << 30
_MOST_ROWS = 1_000_000
_MOST_TEXT, _MOST_NOTE = 1_000, 3_900
_MOST_NAMES = 5_000
_MOST_SECONDS = 60.0
#: instructions of SQLite's machine between two looks at the clock
_INSTRUCTIONS = 10_000
_MOST_POINTS = 1_000_000
#: why an assignment is no lab that is graded here, by the kinds of its cells
_NOT_GRADED = {
    "by hand": "people grade its answers",
    "by tests": "its tests run in the kernel of a learner's notebook, after the "
    "learner's code, which could answer for them",
    "task": "people grade its tasks",
}
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
_Row = tuple[Any, ...]


class BadGradebook(Exception):
    """It can't be read; the message says why and what to do."""


def read_course(folder: Path) -> NbgraderCourse:
    """Read what students have of each assignment of a course.

    Args:
        folder: of the course; nothing of it is run, and no notebook is opened.

    Raises:
        BadGradebook: it has none, or one that is damaged, too large or in use.
    """
    rows = _read(folder / "gradebook.db")
    cells = _cells(rows)
    submitted = _submitted(rows, cells)
    students = tuple(
        NbgraderStudent(str(id), *map(_name, names)) for id, *names in rows["student"]
    )
    names = {id: str(name) for id, name, _ in rows["assignment"]}
    waiting = _not_autograded(folder, names, submitted)
    assignments = [
        _assignment(
            names[id],
            _time_ms(due),
            cells.get(id, []),
            submitted.get(id, []),
            waiting[names[id]],
        )
        for id, _, due in rows["assignment"]
    ]
    known = {*names.values()}
    assignments += [
        NbgraderAssignment(
            name,
            0,
            problem="it is not in the gradebook: nbgrader has graded nothing of it",
        )
        for name in _folders(folder / "source")
        if name not in known
    ]
    return NbgraderCourse(students, tuple(assignments))


class _Cell(NamedTuple):
    id: object
    name: str
    most_points: float | None
    #: "by tests", "by hand" or "task"
    kind: str


class _Submission(NamedTuple):
    student: str
    received_ms: int | None
    extension_ms: int | None
    #: None: one is no number
    penalty: float | None
    #: by cell
    grades: Mapping[object, _Row]


def _cells(rows: Mapping[str, list[_Row]]) -> dict[object, list[_Cell]]:
    """Return the cells that have points, by assignment."""
    assignment_of = {id: assignment for id, assignment in rows["notebook"]}
    base = {id: (name, notebook) for id, name, notebook in rows["base_cell"]}
    written = {base.get(id) for (id,) in rows["solution_cells"]}
    cells: dict[object, list[_Cell]] = defaultdict(list)
    for table in ("grade_cells", "task_cells"):
        for id, points in rows[table]:
            if id in base and base[id][1] in assignment_of:
                name, notebook = base[id]
                kind = "by hand" if base[id] in written else "by tests"
                kind = "task" if table == "task_cells" else kind
                cell = _Cell(id, str(name), _number(points), kind)
                cells[assignment_of[notebook]].append(cell)
    return cells


def _submitted(
    rows: Mapping[str, list[_Row]], cells: Mapping[object, list[_Cell]]
) -> dict[object, list[_Submission]]:
    """Return what was handed in, by assignment."""
    grades: dict[object, dict[object, _Row]] = defaultdict(dict)
    of_notebook = {id: submission for id, submission, _ in rows["submitted_notebook"]}
    for notebook, cell, *scores in rows["grade"]:
        grades[of_notebook.get(notebook)][cell] = tuple(scores)
    penalties: dict[object, float | None] = {}
    for _, submission, penalty in rows["submitted_notebook"]:
        before, more = penalties.get(submission, 0.0), _number(penalty or 0.0)
        is_unfit = before is None or more is None
        penalties[submission] = None if is_unfit else (before or 0) + (more or 0)
    by_assignment: dict[object, list[_Submission]] = defaultdict(list)
    for id, assignment, student, received, extension in rows["submitted_assignment"]:
        by_assignment[assignment].append(
            _Submission(
                str(student),
                _time_ms(received),
                # an interval is kept as a date after 1970
                _time_ms(extension),
                penalties.get(id, 0.0),
                grades.get(id, {}),
            )
        )
    return by_assignment


def _assignment(
    name: str,
    due_ms: int | None,
    cells: list[_Cell],
    submitted: list[_Submission],
    waiting: int,
) -> NbgraderAssignment:
    kinds = Counter(cell.kind for cell in cells)
    about = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    why = " and ".join(_NOT_GRADED[kind] for kind in sorted(kinds))
    points = [cell.most_points for cell in cells]
    most = math.fsum(one for one in points if one is not None)
    problems = []
    if None in points or most > _MOST_POINTS:
        most = 0.0
        problems.append("the points of a cell are no number")
    marks = {one.student: _mark(cells, one) for one in submitted}
    for words in dict.fromkeys(
        mark for mark in marks.values() if isinstance(mark, str)
    ):
        who = [student for student, mark in marks.items() if mark == words]
        problems.append(f"of {_listed(who)} {words}")
    if waiting:
        problems.append(f"{waiting:,} submissions: run `nbgrader autograde` on them")
    times = [one.received_ms for one in submitted if one.received_ms is not None]
    return NbgraderAssignment(
        name,
        round(most, 6),
        due_ms,
        max(times, default=None),
        {who: mark for who, mark in marks.items() if isinstance(mark, NbgraderMark)},
        f"cells graded {about}; not graded here, since {why}" if about else "",
        "; ".join(problems)[:_MOST_TEXT],
    )


def _mark(cells: Iterable[_Cell], of: _Submission) -> NbgraderMark | str:
    graded = [(cell, of.grades[cell.id]) for cell in cells if cell.id in of.grades]
    if not graded:
        return "nothing is graded: run `nbgrader autograde`"
    if of.penalty is None:
        return "a penalty is no number"
    scores, words = [], []
    for cell, (auto, manual, extra, needs_manual) in graded:
        if needs_manual:
            return "a cell waits for its grade by hand"
        score = _number((auto if manual is None else manual) or 0.0)
        more = _number(extra or 0.0)
        if score is None or more is None:
            return "a score is no number"
        scores += [score, more]
        bonus = f" and {more:g} extra" if more else ""
        words.append(f"{cell.name} {score:g}{bonus} of {cell.most_points or 0:g}")
    raw = math.fsum(scores)
    points = round(max(0.0, raw - of.penalty), 6)
    if points > _MOST_POINTS:
        return "a score is no number"
    late = f", less {of.penalty:g} for lateness" if of.penalty else ""
    first = [f"{raw:g}{late}"]
    if of.received_ms is not None:
        at = datetime.fromtimestamp(of.received_ms / 1000, timezone.utc)
        first.append(f"handed in {at:%Y-%m-%d %H:%M} UTC")
    if of.extension_ms:
        first.append(f"extension of {of.extension_ms / 3_600_000:g} h")
    return NbgraderMark(points, "; ".join([*first, *words])[:_MOST_NOTE])


def _not_autograded(
    folder: Path,
    names: Mapping[object, str],
    submitted: Mapping[object, list[_Submission]],
) -> Counter[str]:
    """Count what was collected and is not in the gradebook, by assignment."""
    there = {
        (one.student, names.get(assignment))
        for assignment, every in submitted.items()
        for one in every
    }
    waiting: Counter[str] = Counter()
    for student in _folders(folder / "submitted"):
        for name in _folders(folder / "submitted" / student):
            waiting[name] += (student, name) not in there
    return waiting


def _folders(folder: Path) -> list[str]:
    """Return the names of folders in a folder; links are not followed."""
    if folder.is_symlink():
        return []
    try:
        with os.scandir(folder) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    plain = (name for name in sorted(names) if not name.startswith("."))
    return [name.encode(errors="replace").decode() for name in plain][:_MOST_NAMES]


def _read(path: Path) -> dict[str, list[_Row]]:
    """Return the rows of all tables that are read, by table."""
    if path.is_symlink() or not path.is_file():
        raise BadGradebook(
            f"{path} is no file. If nbgrader_config.py names another gradebook, copy "
            "that to here."
        )
    if path.stat().st_size > _MOST_BYTES:
        raise BadGradebook(f"{path} has more than {_MOST_BYTES >> 20:,} MiB.")
    for suffix in ("-journal", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise BadGradebook(f"{path} is in use: wait until nbgrader is done.")
    until_s = time.monotonic() + _MOST_SECONDS
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, isolation_level=None)
        ) as connection:
            connection.text_factory = _text
            for setting in ("trusted_schema=OFF", "query_only=ON", "mmap_size=0"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("PRAGMA cell_size_check=ON")
            connection.set_progress_handler(
                lambda: time.monotonic() > until_s, _INSTRUCTIONS
            )
            tables = _tables(connection)
            connection.set_authorizer(_authorize)
            return {
                table: list(_rows(connection, tables, table, columns))
                for table, columns in _TABLES.items()
            }
    except (sqlite3.Error, MemoryError, ValueError) as problem:
        why = "it takes too long" if time.monotonic() > until_s else problem
        raise BadGradebook(f"{path} can't be read: {why}.") from None


def _tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the columns of the plain tables; a view could compute for ever."""
    tables: dict[str, set[str]] = {}
    for name in _TABLES:
        statement = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?"
        row = connection.execute(statement, (name,)).fetchone()
        if row is not None and str(row[0]).upper().startswith("CREATE TABLE"):
            about = connection.execute(f'PRAGMA table_xinfo("{name}")').fetchmany(100)
            # the last of each tells whether it is computed when it is read
            tables[name] = {str(column[1]) for column in about if not column[-1]}
    return tables


def _rows(
    connection: sqlite3.Connection,
    tables: Mapping[str, set[str]],
    table: str,
    columns: tuple[str, ...],
) -> Iterator[_Row]:
    missing = {*columns} - tables.get(table, set())
    if missing:
        raise BadGradebook(
            f"This gradebook is of another version of nbgrader than 0.6 to 0.9: table "
            f"`{table}` lacks {', '.join(sorted(missing))}. Run `nbgrader db upgrade`."
        )
    names = ", ".join(f'"{name}"' for name in columns)
    rows = connection.execute(f'SELECT {names} FROM "{table}" LIMIT {_MOST_ROWS + 1}')
    for count, row in enumerate(rows):
        if count == _MOST_ROWS:
            raise BadGradebook(f"Table `{table}` has more than {_MOST_ROWS:,} rows.")
        # nbgrader writes none, and rows can share so many that memory ends
        yield tuple(None if isinstance(one, bytes) else one for one in row)


def _text(content: bytes) -> str:
    return content[: 2 * _MOST_TEXT].decode("utf-8", "replace")[:_MOST_TEXT]


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _number(value: object) -> float | None:
    """Return a number of points; None where it can't be one."""
    if isinstance(value, (int, float)) and abs(value) <= _MOST_POINTS:
        return float(value)
    return None


def _name(value: object) -> str | None:
    return None if value is None else str(value).strip()


def _time_ms(value: object) -> int | None:
    """Return a time, which nbgrader keeps in UTC; None where there is none."""
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    after_ms = int(at.replace(tzinfo=timezone.utc).timestamp() * 1000)
    return after_ms if 2 <= after_ms < 7_258_118_400_000 else None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if names[5:] else "")
