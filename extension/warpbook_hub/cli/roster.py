"""`warpbook hub roster`: shows how a roster is read, and imports it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warpbook.cli.output import CommandError
from warpbook_hub.cli.course import add_hub_options, ask_course
from warpbook_hub.cli.introduction import say

if TYPE_CHECKING:
    from warpbook_hub.course.roster import RosterChanges, RosterShown

_WAIT_S = 60.0
_MOST_NAMES = 20


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "roster",
        help="show how a roster is read and what it would change; with --import, do it",
        description="Send a file of a spreadsheet, Canvas, Moodle, Blackboard or "
        "nbgrader to a course, which shows how it was read and what it would change.",
    )
    add = parser.add_argument
    add("file", type=Path, help="in any encoding")
    add_hub_options(parser)
    add("--encoding", default="", metavar="NAME", help="in place of the one detected")
    add(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=NAME",
        help="the column of a field, such as `username=SIS Login ID`; without a name, "
        "none; more than once for more",
    )
    add("--import", action="store_true", dest="imports", help="change the course")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Ask the course, and say what it answers."""
    # the service's own; other commands start without them
    from warpbook_hub.course.roster import RosterShown
    from warpbook_hub.service.parameters import RosterFile

    try:
        content = options.file.read_bytes()
    except OSError as problem:
        raise CommandError(f"{options.file}: {problem.strerror}.") from None
    pairs = [text.partition("=") for text in options.column]
    if not all(equals for _, equals, _ in pairs):
        raise CommandError("--column is such as `username=SIS Login ID`.")
    asked = RosterFile(
        content,
        encoding=options.encoding,
        columns={field.strip(): name.strip() for field, _, name in pairs},
        is_preview=not options.imports,
    )
    shown = ask_course(options, "roster", asked, RosterShown, _WAIT_S)
    for line in _lines(shown, options.imports):
        say(line)
    return 1 if shown.problems else 0


def _lines(shown: RosterShown, is_done: bool) -> Iterator[str]:
    encoding = shown.encodings.get(shown.encoding, shown.encoding)
    doubt = "" if shown.is_encoding_sure else " (its bytes do not say which)"
    program = f"As {shown.program} exports it. " if shown.program else ""
    yield f"{program}{shown.people:,} people, in {encoding}{doubt}"
    others = [name for name in shown.encodings if name != shown.encoding]
    if others:
        yield f"  It may be, with --encoding: {', '.join(others)}"
    for column in shown.columns:
        if column.field:
            examples = ", ".join(column.examples)
            yield f"  {column.field:<11} from `{column.name}`: {examples}"
    if shown.unused_columns:
        yield f"  not used    {_listed(shown.unused_columns)}"
    for words, problems in (("left out", shown.skipped), ("PROBLEM", shown.problems)):
        for problem in problems:
            yield f"  {words}, line {problem.line}: {problem.message}"
    yield from change_lines(shown, is_done)
    if not is_done and not shown.problems:
        yield "Nothing was changed. Do it: the same with --import"


def change_lines(shown: RosterChanges, is_done: bool) -> Iterator[str]:
    for note in shown.notes:
        yield f"  Look at this: {note}"
    for words, names in (
        ("added", shown.added),
        ("changed", shown.changed),
        ("hidden", shown.hidden),
        ("brought back", shown.returned),
    ):
        would = words if is_done else f"would be {words}"
        yield f"{would}: {len(names):,}{f' ({_listed(names)})' if names else ''}"
    yield f"unchanged: {shown.unchanged:,}"


def _listed(names: tuple[str, ...]) -> str:
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
