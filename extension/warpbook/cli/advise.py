"""`warpbook advise`: the optimisation checklist against what was measured."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from warpbook.cli.output import CommandError, print_json, terminal_width
from warpbook.cli.script_process import run_script
from warpbook.reports.checklist import checklist_lines
from warpbook_monitors.budget import TRACES, hold
from warpbook_monitors.plain_text import fitted, printable
from warpbook_profiler.advice.cell_code import MOST_CHARACTERS
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.files.file_profile import profile_of
from warpbook_profiler.files.nsight.ncu import looks_like_ncu
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.ranks.files import trace_files
from warpbook_profiler.techniques.registry import checklist

_DEFAULT_TIMEOUT_S = 300.0
_MOST_TIMEOUT_S = 86_400.0
_WITHOUT_GPU = (
    "torch sees no GPU here, so that most of the list is unknown: run it where a GPU "
    "is, or give a trace that was recorded there and --source SCRIPT."
)


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "advise",
        help="go through the optimisation checklist with a trace or a script",
        description="Go through the optimisation checklist (tensor cores, AMP, CUDA "
        "graphs, pinned input, cuDNN, fusion, batch, checkpoints, inference) with what "
        "was measured: yes, no, not applicable or unknown, each with its evidence. A "
        "SCRIPT is run as itself, under the profiler.",
    )
    parser.add_argument(
        "subject",
        type=Path,
        metavar="TRACE|SCRIPT",
        help="a trace, as warpbook analyze takes it, a folder of them, or a .py file",
    )
    parser.add_argument(
        "--args",
        type=_words,
        metavar="TEXT",
        help='what the SCRIPT is called with: --args="--epochs 1"',
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FILE",
        help="the code of the TRACE: settings that a trace does not show are looked up "
        "in it",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help=f"how long a SCRIPT may run; {_DEFAULT_TIMEOUT_S:.0f} if left out",
    )
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Profile or read, go through the list, and print it."""
    if options.subject.suffix == ".py":
        if options.source is not None:
            options.parser.error("--source is of a TRACE: a SCRIPT is its own source")
        checklists = {options.subject.name: _of_script(options)}
    else:
        if options.args is not None or options.timeout is not None:
            options.parser.error("--args and --timeout are of a SCRIPT, a .py file")
        checklists = _of_traces(options)
    if options.json:
        print_json({"checklists": checklists})
        return 0
    lines = fitted(map(printable, _text(checklists)), terminal_width())
    print("\n".join(lines))
    return 0


def _text(checklists: dict[str, Checklist]) -> Iterator[str]:
    for place, (name, answers) in enumerate(checklists.items()):
        if place:
            yield ""
        if len(checklists) > 1:
            yield name
        yield from checklist_lines(answers)


def _of_script(options: argparse.Namespace) -> Checklist:
    timeout_s = options.timeout or _DEFAULT_TIMEOUT_S
    profile, process, has_gpu = run_script(
        options.subject, options.args or [], timeout_s
    )
    source = _read_source(options.subject)
    answers = checklist(profile, source, process)
    if not has_gpu:
        return structs.replace(answers, warnings=(_WITHOUT_GPU, *answers.warnings))
    return answers


def _of_traces(options: argparse.Namespace) -> dict[str, Checklist]:
    source = None if options.source is None else _read_source(options.source)
    checklists, paths = {}, trace_files([options.subject])
    if options.is_own_process:
        hold(TRACES, inputs=len(paths))
    for path in paths:
        if looks_like_ncu(str(path)):
            raise CommandError(
                f"{path} is a table of Nsight Compute, which has kernels alone: give a "
                "trace of torch.profiler or Nsight Systems."
            )
        events, run_of_trace = read_trace(str(path))
        profile = profile_of(events, replace(run_of_trace, source=source)).profile
        checklists[path.name] = checklist(profile, source)
    return checklists


def _read_source(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MOST_CHARACTERS)
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}.") from None


def _words(text: str) -> list[str]:
    """Split what a shell would split.

    Raises:
        argparse.ArgumentTypeError: a quote is open.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: {error}") from None


def _seconds(text: str) -> float:
    """Read a time.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _MOST_TIMEOUT_S:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no time in seconds above 0, of a day at most"
        )
    return seconds
