"""Reads a roster that any program may have written: bounded, each line checked."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set

from msgspec import Struct

from warpbook_hub.course.courses import MAIN_SECTION, fit_username
from warpbook_hub.errors import BadRequest, BadRoster, RosterProblem
from warpbook_hub.texts import MOST_NAME, is_fit_name
from warpbook_monitors.plain_text import bounded

MOST_BYTES = 2 << 20
MOST_ROWS = 5_000
MOST_TEAM = 4
_MOST_PROBLEMS = 20
#: what a column is, by how it is called, in any file that has a `username`
_OWN = {
    "username": "username",
    "user_name": "username",
    "user": "username",
    "login": "username",
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
#: what a text can't have unless bytes were decoded before, and not checked
_LOST = {
    "\0": "There is a NUL character.",
    "\N{REPLACEMENT CHARACTER}": "A character was lost when this was decoded: it is no "
    "text in UTF-8. Choose the file itself, saved in UTF-8.",
}
_SEPARATOR = re.compile(r"sep=([,;\t])[\r\n]*", re.IGNORECASE)
_NAMES = {"first_name", "last_name", "email"}


class _Export(Struct, frozen=True):
    """What a known program writes."""

    #: by these it is recognised
    columns: Set[str]
    #: beside `_OWN`; of those that have no user name a person says which it is
    means: dict[str, str]
    #: it has no others
    is_all: bool = False


_EXPORTS = (
    # Canvas: the gradebook
    _Export(
        {"student", "id", "sis_login_id", "section"},
        {"sis_login_id": "username", "student": "full_name"},
    ),
    # Moodle: the participants
    _Export(
        {"username", "email_address"},
        {"email_address": "email", "groups": "section"},
    ),
    # Gradescope: the roster
    _Export({"sid", "email", "role", "sections"}, {"sections": "section"}),
    # nbgrader: what it imports, and what it exports
    _Export(_NAMES | {"id"}, {"id": "username"}, True),
    _Export(_NAMES | {"student_id"}, {"student_id": "username"}, True),
)


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


class Roster(Struct, frozen=True):
    """What a file says."""

    rows: tuple[RosterRow, ...]
    #: columns that are left out, as the file calls them
    unused: tuple[str, ...]


def read_roster(content: bytes) -> tuple[RosterRow, ...]:
    """Give the rows of `parse_roster`."""
    return parse_roster(content).rows


def parse_roster(content: bytes, username_column: str = "") -> Roster:
    """Read a CSV with a header.

    The column `username` is needed; `first_name`, `last_name`, `email`, `section` and
    `team` may be there, others are left out. What Canvas, Moodle, Gradescope and
    nbgrader write is recognised by its columns.

    Args:
        content: the file.
        username_column: the one with the user names, where a person has said it.

    Raises:
        BadRoster: with each problem and its line; at most 20 are told.
    """
    lines = _text(content).splitlines(keepends=True)
    delimiter = max(",;\t", key=lines[0].count) if lines else ","
    first = 1
    if lines and (says := _SEPARATOR.fullmatch(lines[0])):
        # so Excel is told what separates the cells
        delimiter, first = says[1], 2
    reader = csv.reader(lines[first - 1 :], delimiter=delimiter)
    problems: list[RosterProblem] = []
    rows: list[RosterRow] = []
    # a row may begin with any of its lines; people look for the first
    line = first
    header: dict[str, int] | None = None
    unused: tuple[str, ...] = ()
    try:
        for cells in reader:
            if header is None:
                header = _header(line, cells, username_column)
                unused = tuple(
                    bounded(cell.strip(), MOST_NAME)
                    for place, cell in enumerate(cells)
                    if place not in header.values() and cell.strip()
                )
            elif any(cell.strip() for cell in cells):
                try:
                    rows.append(_row(line, cells, header))
                except BadRequest as problem:
                    problems.append(RosterProblem(line, str(problem)))
            line = first + reader.line_num
            if len(rows) > MOST_ROWS:
                raise _one(line, f"There are more than {MOST_ROWS:,} rows.")
    except csv.Error as problem:
        at = first - 1 + reader.line_num
        raise _one(at, f"This is no CSV: {problem}.") from None
    if header is None:
        raise _one(1, "The file is empty.")
    problems += _doubles(rows)
    problems += _large_teams(rows)
    if problems:
        problems.sort(key=lambda problem: problem.line)
        raise BadRoster(tuple(problems[:_MOST_PROBLEMS]))
    if not rows:
        raise _one(
            first + 1, "There is nobody in it. An empty roster would hide everybody."
        )
    return Roster(tuple(rows), unused)


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


def _text(content: bytes) -> str:
    if len(content) > MOST_BYTES:
        raise _one(1, f"The file has more than {MOST_BYTES >> 20} MiB.")
    try:
        # spreadsheets write a mark at the start
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise _one(line, "This is no text in UTF-8: save the file so.") from None
    for character, words in _LOST.items():
        if character in text:
            line = text.count("\n", 0, text.index(character)) + 1
            raise _one(line, words)
    return text


def _header(line: int, cells: list[str], username_column: str) -> dict[str, int]:
    names = [_called(cell) for cell in cells]
    means = _OWN
    for export in _EXPORTS:
        is_known = export.columns <= {*names}
        if export.is_all:
            key = export.columns - _NAMES
            is_known = key < {*names} <= export.columns
        if is_known:
            means = {**_OWN, **export.means}
            break
    if username_column:
        chosen = _called(username_column)
        if chosen not in names:
            raise _one(line, f"No column is called `{bounded(username_column)}`.")
        others = {name: of for name, of in means.items() if of != "username"}
        means = {**others, chosen: "username"}
    columns: dict[str, int] = {}
    for place, written in enumerate(names):
        name = means.get(written)
        if name is None:
            continue
        if name in columns:
            raise _one(line, f"Two columns are the {name}.")
        columns[name] = place
    if "username" not in columns:
        shown = ", ".join(bounded(cell.strip(), MOST_NAME) for cell in cells[:20])
        raise _one(
            line,
            "The first line must name the columns, and one of them `username`. Others "
            "may be first_name, last_name, email, section, team. Or say which of "
            f"these has the user names: {shown}.",
        )
    return columns


def _called(cell: str) -> str:
    return cell.strip().lower().replace(" ", "_")


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
    if "full_name" in fields:
        last, _, first = fields.pop("full_name").partition(",")
        fields |= {"first_name": first.strip(), "last_name": last.strip()}
    username = fit_username(fields.pop("username", ""))
    if fields.get("section") == "":
        fields["section"] = MAIN_SECTION
    return RosterRow(line, username, **fields)


def alike(rows: Iterable[RosterRow], sections: Iterable[str]) -> tuple[str, ...]:
    """Say what is probably meant to be one: sections by case, people by e-mail.

    Args:
        rows: of a roster.
        sections: that the course has.
    """
    spellings: dict[str, set[str]] = {}
    people: dict[str, list[str]] = {}
    rows = list(rows)
    for name in (*sections, *(row.section for row in rows if row.section)):
        spellings.setdefault(name.casefold(), set()).add(name)
    for row in rows:
        if row.email:
            people.setdefault(row.email.casefold(), []).append(row.username)
    return (
        *(
            f"sections that differ in case alone: {', '.join(sorted(names))}"
            for names in spellings.values()
            if len(names) > 1
        ),
        *(
            f"one e-mail address of several people: {', '.join(names)}"
            for names in people.values()
            if len(names) > 1
        ),
    )


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
