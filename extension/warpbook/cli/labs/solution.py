"""`warpbook labs solution`, and what a result says of what comes next."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from collections.abc import Iterator

from warpbook.cli.output import print_json
from warpbook.lab_solutions import solution_of
from warpbook_labs.cards.model import CardSection
from warpbook_labs.cards.next_step import next_section, next_words
from warpbook_labs.course.overview import (
    look_here,
    next_lab,
    overview,
    skipped_words,
    so_far,
)
from warpbook_labs.course.progress import Progress
from warpbook_labs.course.session import Graded, find
from warpbook_labs.course.solution import Solution
from warpbook_labs.course.store import Store
from warpbook_labs.lab.texts import plain_math
from warpbook_monitors.plain_text import printable

_WIDTH = 88


def solution(options: argparse.Namespace) -> int:
    """Print the reference and its discussion, if they may be shown now."""
    loaded = find(options.lab)
    progress = Store().progress().get(loaded.lab.id, Progress())
    shown = solution_of(loaded.lab, loaded.folder, progress)
    if options.json:
        print_json(shown)
        return 0
    # tabs of a source are its columns
    lines = (line.expandtabs(4) for line in _lines(shown))
    print("\n".join(map(printable, lines)))
    return 0


def next_sections(
    options: argparse.Namespace, graded: Graded
) -> tuple[CardSection, ...]:
    """Say what can be done after a pass, by commands."""
    if not graded.passed:
        return ()
    if graded.submission is None:
        words = "Hand it in: hidden cases are drawn for it:"
        return (next_section([f"{words} `warpbook labs submit {target(options)}`"]),)
    labs, _ = overview(look_here(), so_far(Store().progress()))
    following = next_lab(labs)
    name = "" if following is None else following.id
    return (
        next_section(
            [
                f"Reference and discussion: `warpbook labs solution {options.lab}`",
                next_words(following, f"warpbook labs open {name}"),
                *filter(None, [skipped_words(labs)]),
            ]
        ),
    )


def target(options: argparse.Namespace) -> str:
    """Write the lab, and the file where one is named, as a shell takes them."""
    file = () if options.file is None else (str(options.file),)
    return printable(shlex.join((options.lab, *file)))


def _lines(shown: Solution) -> Iterator[str]:
    yield f"Reference solution of {shown.lab} ({shown.file})"
    yield ""
    yield from shown.reference.rstrip().splitlines()
    if shown.discussion:
        yield from ("", "Discussion")
        for paragraph in plain_math(shown.discussion).strip().split("\n\n"):
            yield ""
            yield from textwrap.wrap(paragraph, _WIDTH)
    if shown.mistakes:
        yield from ("", "What often goes wrong")
        for mistake in shown.mistakes:
            yield ""
            yield from textwrap.wrap(f"{mistake.name}: {mistake.reason}", _WIDTH)
