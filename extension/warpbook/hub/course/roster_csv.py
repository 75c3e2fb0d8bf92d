"""Reads a roster that any program may have written: bounded, each line checked."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct

from warpbook.hub.course.courses import MAIN_SECTION, fit_username
from warpbook.hub.errors import BadRequest, BadRoster, RosterProblem
from warpbook.hub.texts import MOST_NAME, is_fit_name

MOST_BYTES = 2 << 20
MOST_ROWS = 5_000
MOST_TEAM = 4
_MOST_PROBLEMS = 20
#: how other programs call the columns
_ALIASES = {
    "username": "username",
    "user_name": "username",
    "user": "username",
    "login": "username",
    "student_id": "username",
    "id": "username",
    "first_name": "first_name",
    "firstname": "first_name",
    "given_name": "first_name",
    "last_name": "last_name",
    "lastname": "last_name",
    "surname": "last_name",
    "family_name": "last_name",
    "email": "email",
    "section": "section",
    "team": "team",
}


class RosterRow(Struct, frozen=True):
    """A learner, as a roster names them; None where it has no such column."""

    line: int
    username: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    #: never empty
    section: str | None = None
    #: empty: they work alone
    team: str | None = None


def read_roster(content: bytes) -> tuple[RosterRow, ...]:
    """Read a CSV with a header.

    The column `username` is needed; `first_name`, `last_name`, `email`, `section` and
    `team` may be there, others are left out.

    Raises:
        BadRoster: with each problem and its line; at most 20 are told.
    """
    if len(content) > MOST_BYTES:
        raise _one(1, f"The file has more than {MOST_BYTES >> 20} MiB.")
    try:
        # spreadsheets write a mark at the start
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise _one(line, "This is no text in UTF-8: save the file so.") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise _one(line, "There is a NUL character.")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    problems: list[RosterProblem] = []
    rows: list[RosterRow] = []
    # a row may begin with any of its lines; people look for the first
    line = 1
    header: dict[str, int] | None = None
    try:
        for cells in reader:
            if header is None:
                header = _header(cells)
            elif any(cell.strip() for cell in cells):
                try:
                    rows.append(_row(line, cells, header))
                except BadRequest as problem:
                    problems.append(RosterProblem(line, str(problem)))
            line = reader.line_num + 1
            if len(rows) > MOST_ROWS:
                raise _one(line, f"There are more than {MOST_ROWS:,} rows.")
    except csv.Error as problem:
        raise _one(reader.line_num, f"This is no CSV: {problem}.") from None
    if header is None:
        raise _one(1, "The file is empty.")
    problems += _doubles(rows)
    problems += _large_teams(rows)
    if problems:
        problems.sort(key=lambda problem: problem.line)
        raise BadRoster(tuple(problems[:_MOST_PROBLEMS]))
    if not rows:
        raise _one(2, "There is nobody in it. An empty roster would hide everybody.")
    return tuple(rows)


def rows_of_names(
    names: Iterable[str], section: str | None = None
) -> tuple[RosterRow, ...]:
    """Make a roster of user names, such as those of a group of the hub.

    Args:
        names: who is in the course.
        section: of all of them; None leaves those who are in one there.

    Raises:
        BadRoster: a name can't be one; its line is its place, counted from 1.
    """
    rows: dict[str, RosterRow] = {}
    problems: list[RosterProblem] = []
    for place, name in enumerate(names, 1):
        try:
            username = fit_username(name)
        except BadRequest as problem:
            problems.append(RosterProblem(place, str(problem)))
        else:
            rows.setdefault(username, RosterRow(place, username, section=section))
    if problems:
        raise BadRoster(tuple(problems[:_MOST_PROBLEMS]))
    if not rows:
        raise _one(1, "There is nobody in it. An empty roster would hide everybody.")
    return tuple(rows.values())


def _one(line: int, message: str) -> BadRoster:
    return BadRoster((RosterProblem(line, message),))


def _delimiter(text: str) -> str:
    first = text.split("\n", 1)[0]
    return max(",;\t", key=first.count)


def _header(cells: list[str]) -> dict[str, int]:
    columns: dict[str, int] = {}
    names = [cell.strip().lower().replace(" ", "_") for cell in cells]
    for place, written in enumerate(names):
        name = _ALIASES.get(written)
        is_other = name == "username" != written and "username" in names
        if name is None or is_other:
            continue
        if name in columns:
            raise _one(1, f"Two columns are the {name}.")
        columns[name] = place
    if "username" not in columns:
        raise _one(
            1,
            "The first line must name the columns, and one of them `username`. Others "
            "may be first_name, last_name, email, section, team.",
        )
    return columns


def _row(line: int, cells: list[str], header: dict[str, int]) -> RosterRow:
    fields = {
        name: cells[place].strip() if place < len(cells) else ""
        for name, place in header.items()
    }
    for name, text in fields.items():
        if not is_fit_name(text):
            raise BadRequest(
                f"{name} has more than {MOST_NAME} characters, or characters that "
                "can't be shown."
            )
    username = fit_username(fields.pop("username", ""))
    if fields.get("section") == "":
        fields["section"] = MAIN_SECTION
    return RosterRow(line, username, **fields)


def _doubles(rows: list[RosterRow]) -> Iterator[RosterProblem]:
    lines: dict[str, int] = {}
    for row in rows:
        first = lines.setdefault(row.username, row.line)
        if first != row.line:
            words = f"`{row.username}` is in line {first}, too."
            yield RosterProblem(row.line, words)


def _large_teams(rows: list[RosterRow]) -> Iterator[RosterProblem]:
    sizes: Counter[str] = Counter()
    for row in rows:
        if not row.team:
            continue
        sizes[row.team] += 1
        if sizes[row.team] == MOST_TEAM + 1:
            words = f"team `{row.team}` has more than {MOST_TEAM} members."
            yield RosterProblem(row.line, words)
