"""What a person can ask of `%%gpuprof`, and which of it is invalid."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Any, Literal

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument

from warpbook.kernel.runs.profile import Profile, profile_in
from warpbook.kernel.trying import ALL, DEFAULT_TRY_SECONDS

#: more runs than this are a mistake
_MOST_RUNS = 1000
#: of the time of a long cell
DEFAULT_SHARE = 0.05
_MOST_SHARE = 0.5
_MOST_TRY_SECONDS = 3600


@dataclass(frozen=True)
class Options:
    """What was asked for, checked before anything runs."""

    quiet: bool = False
    output: str | None = None
    repeats: int = 1
    warm_ups: int = 0
    memory: bool = False
    lines: bool = False
    shapes: bool = True
    #: an absolute path
    save: str | None = None
    #: what to compare with
    versus: Profile | None = None
    #: in windows, while it runs
    live: bool = False
    #: of the time, what the windows may take
    share: float = DEFAULT_SHARE
    #: the change to try on copies, or all; None for none
    tried: str | None = None
    #: the change to apply, empty for the first, or all; None for none
    applied: str | None = None
    #: what all trials may take
    try_seconds: float = DEFAULT_TRY_SECONDS
    #: how the cell runs again to be sampled; None for not at all
    stalls: Literal["copies", "rerun"] | None = None


def arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a magic these options; to be put below `@magic_arguments()`."""
    for decorator in reversed(
        (
            argument(
                "-q",
                "--quiet",
                action="store_true",
                help="Show no report; the dashboard gets it all the same.",
            ),
            argument(
                "-o",
                "--output",
                metavar="NAME",
                help="Keep the profile in this variable, whose name is the title.",
            ),
            argument(
                "-r",
                "--repeats",
                metavar="N",
                type=int,
                default=1,
                help="Run the code N times with the profiler and N times without it, "
                "in turns, and report the fastest. Its side effects happen each time.",
            ),
            argument(
                "-w",
                "--warm-ups",
                metavar="N",
                type=int,
                default=0,
                help="Run the code N times more before that. Its side effects happen "
                "each time.",
            ),
            argument(
                "--memory",
                action="store_true",
                help="Record each allocation of torch, some microseconds each.",
            ),
            argument(
                "--lines",
                action="store_true",
                help="Of %%gpuprof: show what each line of the cell took; a fraction "
                "of a microsecond for each statement that runs.",
            ),
            argument(
                "--no-shapes",
                action="store_true",
                help="Don't note what each operator is called with, which takes less "
                "than a microsecond each: no FLOPs and no roofline then.",
            ),
            argument(
                "--save",
                metavar="PATH",
                help="Write the run's Chrome trace to this .json file, also over one.",
            ),
            argument(
                "--vs",
                metavar="NAME",
                help="Compare with the profile in this variable.",
            ),
            argument(
                "--live",
                action="store_true",
                help="For code that runs for minutes: profile windows of some steps, "
                "and show how it stands while it runs.",
            ),
            argument(
                "--share",
                metavar="RATIO",
                type=float,
                default=None,
                help="What the windows of --live may take of the time, up to 0.5; "
                "0.05 if left out.",
            ),
            argument(
                "--try",
                dest="tried",
                metavar="NAME",
                nargs="?",
                const=ALL,
                default=None,
                type=_experiment,
                help="Measure a change on copies of the cell's state, as tf32 or "
                "compile, or all that fit.",
            ),
            argument(
                "--apply",
                dest="applied",
                metavar="NAME",
                nargs="?",
                const="",
                default=None,
                type=_change,
                help="Show the cell edited by a change that the report advises, or by "
                "all that gain, one after the other, measured on copies of the cell's "
                "state; the first change if left out.",
            ),
            argument(
                "--try-seconds",
                metavar="SECONDS",
                type=float,
                default=None,
                help="What the trials of --try or --apply may take; 60 if left out.",
            ),
            argument(
                "--stalls",
                metavar="WAY",
                nargs="?",
                const="copies",
                default=None,
                choices=("copies", "rerun"),
                help="Show on which lines of its kernels the warps wait, and why: the "
                "cell runs once more, sampled, on copies of its state; by rerun the "
                "cell itself does, and its side effects happen twice.",
            ),
        )
    ):
        function = decorator(function)
    return function


def _experiment(name: str) -> str:
    """Return the name of a change that can be tried, or of all.

    Raises:
        ArgumentTypeError: it is none; which there are follows.
    """
    # it needs NumPy, which takes long to import
    from warpbook_profiler.techniques.registry import experiments, technique_of

    names = [ALL, *(kind.name for kind in experiments())]
    if name in names:
        return name
    technique = technique_of(name)
    why = "" if technique is None else f" {technique.untried}"
    raise argparse.ArgumentTypeError(
        f"{name[:60]!r} can't be tried.{why} These can: {', '.join(names)}."
    )


def _change(name: str) -> str:
    """Return the name of a change that can be advised, of all, or of none.

    Raises:
        ArgumentTypeError: it is none.
    """
    # it needs NumPy, which takes long to import
    from warpbook_profiler.techniques.registry import techniques

    names = {name for technique in techniques() for name in technique.names}
    if name in ("", ALL, *names):
        return name
    raise argparse.ArgumentTypeError(f"No report advises {name[:60]!r}.")


def checked(options: argparse.Namespace, variables: Mapping[str, Any]) -> Options:
    """Take the options if they make sense.

    Args:
        options: as they were parsed.
        variables: the person's.

    Raises:
        UsageError: they make no sense, in words.
    """
    name = options.output
    if name is not None and (not name.isidentifier() or iskeyword(name)):
        raise UsageError(f"%%gpuprof -o wants the name of a variable, not {name!r}.")
    if not 1 <= options.repeats <= _MOST_RUNS:
        raise UsageError(f"%%gpuprof -r wants a number from 1 to {_MOST_RUNS}.")
    if not 0 <= options.warm_ups <= _MOST_RUNS:
        raise UsageError(f"%%gpuprof -w wants a number from 0 to {_MOST_RUNS}.")
    share = checked_share(options.share, options.live)
    if options.live and (
        options.repeats > 1
        or options.warm_ups
        or options.memory
        or options.lines
        or options.save is not None
        or options.vs is not None
        or options.tried is not None
        or options.applied is not None
        or options.stalls is not None
    ):
        raise UsageError(
            "%%gpuprof --live profiles parts of one run: it goes with -q, -o and "
            "--share only."
        )
    if options.tried is not None and options.applied is not None:
        raise UsageError("%%gpuprof --apply tries what it applies: leave --try out.")
    return Options(
        quiet=options.quiet,
        output=name,
        repeats=options.repeats,
        warm_ups=options.warm_ups,
        memory=options.memory,
        lines=options.lines,
        shapes=not options.no_shapes,
        save=None if options.save is None else checked_path(_unquoted(options.save)),
        versus=None if options.vs is None else _profile_named(options.vs, variables),
        live=options.live,
        share=share,
        tried=options.tried,
        applied=options.applied,
        try_seconds=_checked_try_seconds(
            options.try_seconds, options.tried, options.applied
        ),
        stalls=options.stalls,
    )


def _unquoted(text: str) -> str:
    """Take the quotes off that hold a path with spaces together; IPython keeps them."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text


def checked_share(share: float | None, live: bool) -> float:
    """Give the share of the time for windows, if they can keep to it.

    Raises:
        UsageError: they can't, or there are none, in words.
    """
    if share is None:
        return DEFAULT_SHARE
    if not live:
        raise UsageError("A share of the time is for the windows of live profiles.")
    if not 0 < share <= _MOST_SHARE:
        raise UsageError(
            f"The share of the time is above 0 and at most {_MOST_SHARE}; 0.05 is 5 %."
        )
    return share


def _checked_try_seconds(seconds: float | None, *names: str | None) -> float:
    """Give the time for trials, if there are any of a name."""
    if seconds is None:
        return DEFAULT_TRY_SECONDS
    if not any(name is not None for name in names):
        raise UsageError("--try-seconds is for the trials of --try and --apply.")
    if not 0 < seconds <= _MOST_TRY_SECONDS:
        raise UsageError(
            f"--try-seconds wants a number above 0, of at most {_MOST_TRY_SECONDS:,}."
        )
    return seconds


def checked_path(path: str) -> str:
    """Give the absolute path of a trace that can be written.

    Raises:
        UsageError: it can't, in words.
    """
    target = Path(path).expanduser().absolute()
    if target.suffix != ".json":
        raise UsageError(f"The trace is written as .json, so {path!r} must end in it.")
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError(f"The trace can't be written to {path!r}: no such folder.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UsageError(f"The trace can't be written to {path!r}: not allowed.")
    return str(target)


def _profile_named(name: str, variables: Mapping[str, Any]) -> Profile:
    try:
        return profile_in(variables.get(name))
    except TypeError:
        raise UsageError(
            f"%%gpuprof --vs wants a variable that holds a profile, and {name!r} does "
            "not: keep one with %%gpuprof -o NAME."
        ) from None
