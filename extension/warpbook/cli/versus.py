"""`warpbook analyze NEW --vs OLD`: is a program slower than it was, for a CI."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from warpbook.cli.output import print_json, terminal_width
from warpbook.reports.text import comparison_lines
from warpbook_monitors.budget import EXCEEDED, TRACES
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.plain_text import fitted, printable
from warpbook_profiler.compare.compare import Comparison, compare
from warpbook_profiler.compare.likeness import LEAST_SCORE
from warpbook_profiler.compare.times import signed_share
from warpbook_profiler.files.file_profile import read_profile
from warpbook_profiler.report.comparison_view import shown

#: the exit statuses that a CI decides by; 2 is also a wrong command line
STATUSES = {"not slower": 0, "slower": 1, "unknown": 3}
#: of what `--json` prints; it grows by one when a key's meaning changes or a key goes
SCHEMA_VERSION = 1
BAD_INPUT = 2
_DEFAULT_LIMIT = 0.05
_PERCENT = re.compile(r"\s*(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)\s*")

Verdict = Literal["slower", "not slower", "unknown"]


class Versus(Struct, frozen=True):
    """Whether the trace after is slower than the one before by more than a limit."""

    verdict: Verdict
    limit: float
    exit_status: int
    comparison: Comparison
    schema: str = "warpbook.versus"
    version: int = SCHEMA_VERSION


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
        help="compare: OLD is before, the one TRACE is after; exit status "
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
            read_profile(str(path)).profile for path in (options.vs, options.traces[0])
        )
        comparison = compare(old, new, least_score=least, noise=options.noise)
    except MonitorError as error:
        # 1 would say that it is slower
        print(f"warpbook: {printable(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except EXCEEDED:
        print(f"warpbook: {TRACES.words}", file=sys.stderr)
        return BAD_INPUT
    verdict = _judged(comparison, limit)
    status = STATUSES[verdict]
    try:
        if options.json:
            print_json(plain(Versus(verdict, limit, status, comparison)))
        else:
            width = terminal_width()
            said, *more = comparison_lines(shown(comparison), width)
            lines = [
                f"{verdict}: {said}{_bound(verdict, comparison, limit)}",
                f"Before: {options.vs}. After: {options.traces[0]}.",
                *more,
            ]
            print("\n".join(fitted(map(printable, lines), width)))
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read it has gone, and the answer is the same
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _judged(comparison: Comparison, limit: float) -> Verdict:
    """Conclude only where the whole interval lies on one side of the limit."""
    time = comparison.time
    if time is None or comparison.verdict == "not comparable":
        return "unknown"
    if time.low > limit:
        return "slower"
    return "not slower" if time.high <= limit else "unknown"


def _bound(verdict: Verdict, comparison: Comparison, limit: float) -> str:
    if comparison.verdict == "not comparable":
        return ""
    place = {
        "slower": "The whole change is beyond",
        "not slower": "The whole change is within",
        "unknown": "The change may be within or beyond",
    }[verdict]
    return f" {place} the limit of {signed_share(limit)}."


def plain(whole: Versus) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(whole)
    return document
