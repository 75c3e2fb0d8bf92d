"""`warpbook analyze NEW --vs OLD`: is a program slower than it was, for a CI."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from warpbook.cli.output import print_json, terminal_width
from warpbook_monitors import units
from warpbook_monitors.budget import EXCEEDED, TRACES
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.plain_text import aligned, fitted, printable, shortened
from warpbook_profiler.compare.comparability import LEAST_SCORE, Comparability
from warpbook_profiler.compare.versus import Asked, Grown, Versus, plain, versus
from warpbook_profiler.files.chrome import read_chrome_trace

#: the exit statuses that a CI decides by; 2 is also a wrong command line
STATUSES = {"not slower": 0, "slower": 1, "unknown": 3}
BAD_INPUT = 2
_DEFAULT_LIMIT = 0.05
_PERCENT = re.compile(r"\s*(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)\s*")
_MOST_ROWS = 12
_NAME_LENGTH = 60


def share(text: str) -> float:
    """Read `5%` or `0.05`.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    given = _PERCENT.fullmatch(text)
    if given is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no share: write `5%` or 0.05, of 0 or more."
        )
    number = float(given[1])
    if given[2]:
        return number / 100
    if number > 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is more than the whole: write {text.strip()}% for a percentage."
        )
    return number


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for CI: is it slower than it was?")
    group.add_argument(
        "--vs",
        type=Path,
        metavar="OLD",
        help="compare the one TRACE with an older trace of the same work; exit status "
        "0: not slower, 1: slower, 2: bad input, 3: not decidable",
    )
    group.add_argument(
        "--fail-slower",
        type=share,
        metavar="SHARE",
        help="how much more time is accepted, as `5%%` or 0.05; 5 %% if left out",
    )
    group.add_argument(
        "--least-comparable",
        type=share,
        metavar="SHARE",
        help="how much of the work must be the same; "
        f"{LEAST_SCORE * 100:.0f} %% if left out",
    )
    group.add_argument(
        "--noise",
        type=share,
        metavar="SHARE",
        help="how far two traces of the same code differ, where they have no steps",
    )


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a wrong command line where options do not fit together."""
    if options.vs is None:
        for name in ("fail_slower", "least_comparable", "noise"):
            if getattr(options, name) is not None:
                option = "--" + name.replace("_", "-")
                parser.error(f"{option} needs --vs OLD, the trace to compare with")
    elif len(options.traces) > 1:
        parser.error("--vs compares one TRACE with OLD: give one TRACE")


def run(options: argparse.Namespace) -> int:
    """Compare, print, and answer by the exit status."""
    limit = _DEFAULT_LIMIT if options.fail_slower is None else options.fail_slower
    least = (
        LEAST_SCORE if options.least_comparable is None else options.least_comparable
    )
    try:
        old, new = (
            read_chrome_trace(str(at)) for at in (options.vs, options.traces[0])
        )
        whole = versus(old, new, Asked(limit, least, options.noise))
    except MonitorError as error:
        # 1 would say that it is slower
        print(f"warpbook: {printable(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except EXCEEDED:
        print(f"warpbook: {TRACES.words}", file=sys.stderr)
        return BAD_INPUT
    status = STATUSES[whole.verdict]
    try:
        if options.json:
            print_json(plain(whole) | {"exit_status": status})
        else:
            print("\n".join(fitted(map(printable, _text(whole)), terminal_width())))
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read it has gone, and the answer is the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _text(whole: Versus) -> Iterator[str]:
    yield f"{whole.verdict}: {whole.sentence}"
    for name, side in (("old", whole.before), ("new", whole.after)):
        for warning in side.warnings:
            yield f"! {name}: {warning}"
    yield ""
    yield from _comparable(whole.comparability, whole.least_score)
    if whole.comparability.score < whole.least_score:
        return
    grown = [row for row in whole.grown if row.change_ns > 0][:_MOST_ROWS]
    less = [row for row in whole.grown if row.change_ns < 0][::-1][:_MOST_ROWS]
    unit = "a step" if whole.per_step else "in all"
    for title, rows in (("More time", grown), ("Less time", less)):
        if rows:
            yield ""
            yield from aligned([(title, "new", "old", unit), *map(_row, rows)])


def _comparable(alike: Comparability, least: float) -> Iterator[str]:
    needed = f"at least {units.share(least)} are needed"
    yield f"The same work: {units.share(alike.score)}, {needed}"
    rows = [("", "the same", "old", "new")]
    for part in alike.parts:
        same = "not known" if part.score is None else f"{units.share(part.score)}"
        was, now = (shortened(one, _NAME_LENGTH) for one in (part.before, part.after))
        rows.append((f"  {part.name}", same, was, now))
    yield from aligned(rows)
    if alike.differing:
        yield ""
        yield from aligned(
            [
                ("Done more or less often", "old", "new", "sizes"),
                *(
                    (
                        f"  {row.kind}: {shortened(row.name, _NAME_LENGTH)}",
                        f"{row.before_calls:,.6g}",
                        f"{row.after_calls:,.6g}",
                        row.shapes or "not known",
                    )
                    for row in alike.differing[:_MOST_ROWS]
                ),
            ]
        )


def _row(row: Grown) -> tuple[str, str, str, str]:
    sign = "-" if row.change_ns < 0 else "+"
    return (
        f"  {row.kind}: {shortened(row.name, _NAME_LENGTH)}",
        units.duration_ns(row.after_ns),
        units.duration_ns(row.before_ns),
        f"{sign}{units.duration_ns(abs(row.change_ns))}",
    )
