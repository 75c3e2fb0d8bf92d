"""Reads a roster that any program may have written: bounded, each line checked."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from warpbook_hub.course.courses import MAIN_SECTION, fit_username
from warpbook_hub.course.roster_columns import (
    FIELDS,
    Columns,
    columns_of,
    known_fields,
    why_skipped,
)
from warpbook_hub.course.roster_text import decoded, one_problem
from warpbook_hub.errors import BadRequest, BadRoster, RosterProblem
from warpbook_hub.texts import MOST_NAME, is_fit_name
from warpbook_monitors.plain_text import bounded

MOST_ROWS = 5_000
MOST_COLUMNS = 1_000
MOST_TEAM = 4
MOST_PROBLEMS = 20
_EXAMPLES = 3
#: lines before the one that names the columns
_MOST_TITLES = 10
#: what a text can't have unless bytes were decoded before, and not checked
_LOST = {
    "\0": "There is a NUL character.",
    "\N{REPLACEMENT CHARACTER}": "A character was lost when this was decoded. Choose "
    "the file itself.",
}
_SEPARATOR = re.compile(r"\"?sep=([,;\t|])\"?[\r\n]*", re.IGNORECASE)


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


class RosterColumn(Struct, frozen=True):
    """A column, and what is taken from it."""

    name: str
    #: one of `FIELDS`, or `role`, by which staff are left out; empty: nothing
    field: str
    examples: tuple[str, ...]


class Roster(Struct, frozen=True):
    """What a file says, and how it was read."""

    rows: tuple[RosterRow, ...]
    #: who writes such files; empty: nobody that is known
    program: str
    encoding: str
    is_encoding_sure: bool
    other_encodings: tuple[str, ...]
    separator: str
    columns: tuple[RosterColumn, ...]
    #: rows that are of no learner, and why
    skipped: tuple[RosterProblem, ...]
    #: why it can't be imported like this
    problems: tuple[RosterProblem, ...]


def read_roster(content: bytes) -> tuple[RosterRow, ...]:
    """Return the rows of a file that can be imported as it is.

    Raises:
        BadRoster: with each problem and its line.
    """
    roster = parse_roster(content)
    if roster.problems:
        raise BadRoster(roster.problems)
    return roster.rows


def parse_roster(
    content: bytes, encoding: str = "", columns: Mapping[str, str] | None = None
) -> Roster:
    """Read a CSV with a header, and say what was taken from which column.

    Args:
        content: the file.
        encoding: that a person has chosen; empty: it is detected.
        columns: by field the name of a column that a person has chosen; empty: none.

    Raises:
        BadRoster: it is no table at all, or a chosen column is not there.
    """
    text = decoded(content, encoding)
    for character, words in _LOST.items():
        if character in text.text:
            line = text.text.count("\n", 0, text.text.index(character)) + 1
            raise one_problem(line, words)
    table = _Table(text.text)
    places = _chosen(table, columns or {})
    known = columns_of(table.names, places)
    problems = list(_doubts(table, known))
    rows: list[RosterRow] = []
    lines: dict[RosterRow, int] = {}
    skipped = list(table.titles)
    for line, cells in table.rows:
        fields = {
            name: cells[place].strip() if place < len(cells) else ""
            for name, place in known.places.items()
        }
        why = why_skipped(known.program, {"first": cells[0], **fields})
        if why:
            skipped.append(RosterProblem(line, bounded(why, MOST_NAME)))
        elif "username" in fields:
            try:
                row = _row(line, fields)
            except BadRequest as problem:
                problems.append(RosterProblem(line, str(problem)))
                continue
            first = lines.setdefault(replace(row, line=0), line)
            if first == line or known.program != "nbgrader":
                rows.append(row)
            else:
                words = f"grades of the learner of line {first}"
                skipped.append(RosterProblem(line, words))
    if not problems and not rows:
        words = "There is nobody in it. An empty roster would hide everybody."
        problems.append(RosterProblem(table.line + 1, words))
    problems += (*_doubles(rows), *_large_teams(rows))
    problems.sort(key=lambda problem: problem.line)
    return Roster(
        tuple(rows),
        known.program,
        text.encoding,
        text.is_sure,
        text.others,
        table.separator,
        _columns(table, known),
        tuple(skipped[:MOST_PROBLEMS]),
        tuple(problems[:MOST_PROBLEMS]),
    )


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
        raise BadRoster(tuple(problems[:MOST_PROBLEMS]))
    if not rows:
        words = "There is nobody in it. An empty roster would hide everybody."
        raise one_problem(1, words)
    return tuple(rows.values())


class _Table:
    """Cells of a file, with the line at which each row begins."""

    def __init__(self, text: str) -> None:
        """Split a text.

        Raises:
            BadRoster: it is no CSV, is empty, or has too many rows or columns.
        """
        lines = io.StringIO(text, newline=None).readlines()
        first = 1
        says = _SEPARATOR.fullmatch(lines[0]) if lines else None
        if says:
            # so Excel is told what separates the cells
            self.separator, first = says[1], 2
        else:
            head = "".join(lines[:_MOST_TITLES])
            self.separator = max(",;\t|", key=head.count)
        reader = csv.reader(lines[first - 1 :], delimiter=self.separator)
        table: list[tuple[int, list[str]]] = []
        # a row may begin with any of its lines; people look for the first
        line = first
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    table.append((line, cells))
                line = first + reader.line_num
                if len(cells) > MOST_COLUMNS:
                    raise one_problem(line - 1, f"More than {MOST_COLUMNS:,} columns.")
                if len(table) > MOST_ROWS + _MOST_TITLES + 1:
                    raise one_problem(line, f"There are more than {MOST_ROWS:,} rows.")
        except csv.Error as problem:
            at = first - 1 + reader.line_num
            raise one_problem(at, f"This is no CSV: {problem}.") from None
        if not table:
            raise one_problem(1, "The file is empty.")
        heads = [known_fields(cells) for _, cells in table[:_MOST_TITLES]]
        # some files have a title before the names
        header = (
            0 if heads[0] else next((at for at, of in enumerate(heads) if of > 1), 0)
        )
        self.titles = [
            RosterProblem(line, "before the line that names the columns")
            for line, _ in table[:header]
        ]
        self.line, names = table[header]
        self.rows = table[header + 1 :]
        if len(self.rows) > MOST_ROWS:
            at = self.rows[MOST_ROWS][0]
            raise one_problem(at + 1, f"There are more than {MOST_ROWS:,} rows.")
        self.names = _distinct(bounded(name.strip(), MOST_NAME) for name in names)


def _distinct(names: Iterable[str]) -> list[str]:
    """Number what has another's name, so that a person can choose it."""
    counts: Counter[str] = Counter()
    distinct = []
    for name in names:
        counts[name] += 1
        more = f" ({counts[name]})" if counts[name] > 1 and name else ""
        distinct.append(f"{name}{more}")
    return distinct


def _chosen(table: _Table, columns: Mapping[str, str]) -> dict[str, int]:
    folded = {name.casefold(): place for place, name in enumerate(table.names) if name}
    places: dict[str, int] = {}
    for field, name in columns.items():
        if field not in FIELDS:
            known = ", ".join(FIELDS)
            words = f"No field is called `{bounded(field)}`; there are: {known}."
            raise one_problem(table.line, words)
        place = folded.get(name.strip().casefold(), -1)
        if name.strip() and place < 0:
            words = f"No column is called `{bounded(name)}`."
            raise one_problem(table.line, words)
        places[field] = place
    return places


def _doubts(table: _Table, known: Columns) -> Iterator[RosterProblem]:
    for field, places in known.doubtful.items():
        if field != "role":
            names = ", ".join(table.names[place] for place in places[:10])
            words = f"More than one column could be the {field}: {names}. Choose one."
            yield RosterProblem(table.line, words)
    if "username" not in known.places and "username" not in known.doubtful:
        shown = ", ".join(name for name in table.names[:20] if name)
        words = f"Choose the column that has the user names. There are: {shown}."
        yield RosterProblem(table.line, words)


def _columns(table: _Table, known: Columns) -> tuple[RosterColumn, ...]:
    fields = {place: field for field, place in known.places.items()}
    return tuple(
        RosterColumn(name, fields.get(place, ""), _examples(table.rows, place))
        for place, name in enumerate(table.names)
        if name
    )


def _examples(rows: Sequence[tuple[int, list[str]]], place: int) -> tuple[str, ...]:
    """Return some cells of a column, first those in which an encoding shows."""
    cells = [cells[place].strip() for _, cells in rows if place < len(cells)]
    distinct = dict.fromkeys(sorted(filter(None, cells), key=str.isascii))
    return tuple(bounded(cell, 60) for cell in [*distinct][:_EXAMPLES])


def _row(line: int, fields: dict[str, str]) -> RosterRow:
    fields.pop("role", None)
    for name, text in fields.items():
        if not is_fit_name(text):
            raise BadRequest(
                f"{name} has more than {MOST_NAME} characters, or characters that "
                "can't be shown."
            )
    if "full_name" in fields:
        last, _, first = fields.pop("full_name").partition(",")
        names = {"first_name": first.strip(), "last_name": last.strip()}
        fields = {**names, **fields}
    username = fit_username(fields.pop("username"))
    if fields.get("section") == "":
        fields["section"] = MAIN_SECTION
    return RosterRow(line, username, **fields)


def _doubles(rows: Sequence[RosterRow]) -> Iterator[RosterProblem]:
    lines: dict[str, int] = {}
    for row in rows:
        first = lines.setdefault(row.username, row.line)
        if first != row.line:
            words = f"`{row.username}` is in line {first}, too."
            yield RosterProblem(row.line, words)


def _large_teams(rows: Sequence[RosterRow]) -> Iterator[RosterProblem]:
    sizes: Counter[str] = Counter()
    for row in rows:
        if not row.team:
            continue
        sizes[row.team] += 1
        if sizes[row.team] == MOST_TEAM + 1:
            words = f"team `{row.team}` has more than {MOST_TEAM} members."
            yield RosterProblem(row.line, words)
