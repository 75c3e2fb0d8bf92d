"""`warpbook hub nbgrader`: shows what becomes of an nbgrader course, and imports it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from warpbook.cli.output import CommandError
from warpbook_hub.cli.course import add_hub_options, ask_course
from warpbook_hub.cli.introduction import say
from warpbook_hub.cli.roster import change_lines

if TYPE_CHECKING:
    from warpbook_hub.course.nbgrader_course import NbgraderChanges

_WAIT_S = 120.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "nbgrader",
        help="show what becomes of an nbgrader course; with --import, take it over",
        description="Send the students and marks of an nbgrader course to a course, "
        "which shows what becomes of them. Nothing of the folder is run.",
    )
    add = parser.add_argument
    add("folder", type=Path, help="with gradebook.db in it")
    add_hub_options(parser)
    add("--import", action="store_true", dest="imports", help="change the course")
    add(
        "--replace",
        action="store_true",
        help="marks that were given or taken back here, too",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    """Ask the course, and say what it answers."""
    # the service's own; other commands start without them
    from msgspec import structs

    from warpbook_hub.cli.nbgrader_gradebook import BadGradebook, read_course
    from warpbook_hub.course.nbgrader_course import NbgraderChanges

    try:
        read = read_course(options.folder)
    except (BadGradebook, OSError) as problem:
        raise CommandError(str(problem)) from None
    asked = structs.replace(
        read, is_preview=not options.imports, replaces=options.replace
    )
    changes = ask_course(options, "nbgrader", asked, NbgraderChanges, _WAIT_S)
    for line in _lines(changes, options.imports):
        say(line)
    return 0


def _lines(changes: NbgraderChanges, is_done: bool) -> Iterator[str]:
    yield "Students"
    for line in change_lines(changes.roster, is_done):
        yield f"  {line}"
    for words in changes.left_out:
        yield f"  left out: {words}"
    for lab in changes.labs:
        if lab.how == "refused":
            yield f"`{lab.name}`: REFUSED, {lab.about}"
            continue
        yield f"`{lab.name}`: {lab.how}, {lab.most_points:g} points, {lab.about}"
        written = "marks written" if is_done else "marks would be written"
        yield (
            f"  {written}: {lab.written:,}; unchanged: {lab.unchanged:,}; "
            f"kept as given here: {lab.kept:,}"
        )
        for example in lab.examples:
            yield f"    {example}"
        if len(lab.examples) < lab.written + lab.kept:
            yield "    ..."
    yield (
        "A lab from nbgrader takes no submissions here: its tests are not run, and its "
        "marks stay as nbgrader gave them. Learners see them once you release them."
    )
    yield "Not used: notebooks, submissions, comments, and nbgrader_config.py"
    if not is_done:
        yield "Nothing was changed. Do it: the same with --import"
