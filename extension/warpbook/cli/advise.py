"""`warpbook advise`: the optimisation checklist against what was measured."""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import util
from pathlib import Path

import msgspec
from msgspec import structs

from warpbook.cli.output import CommandError, print_json, terminal_width
from warpbook.reports.checklist import checklist_lines
from warpbook_monitors.budget import TRACES, hold
from warpbook_monitors.plain_text import fitted, printable
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.advice.code.cell_code import MOST_CHARACTERS
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.files.file_profile import profile_of
from warpbook_profiler.files.nsight.ncu import looks_like_ncu
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.files.script_answer import ScriptAnswer
from warpbook_profiler.model.cell_profile import CellProfile
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


_MODULE = "warpbook_profiler.files.script_run"
_STDERR = 2
#: of variables that must be there before torch is imported
_EARLY = ("CUDA_", "NVIDIA_", "PYTORCH_", "TORCH", "OMP_", "MKL_")


def run_script(
    script: Path, arguments: Sequence[str], timeout_s: float
) -> tuple[CellProfile, ProcessState, bool]:
    """Run a script where this process is, and give its profile.

    What it prints goes to standard error. Its children end with it.

    Returns:
        the profile, the settings of the process, and whether torch sees a GPU.

    Raises:
        CommandError: there is no torch or no such script, the script failed or took
            too long, or nothing could be recorded.
    """
    if not script.is_file():
        raise CommandError(f"{script} is no file.")
    if util.find_spec("torch") is None:
        raise CommandError(
            f"{script} is profiled with PyTorch, which is not installed for this "
            "Python: give a trace that was recorded elsewhere, with --source."
        )
    with tempfile.TemporaryDirectory(prefix="warpbook-") as folder:
        answer_file = Path(folder) / "answer"
        status = _run(
            [str(answer_file), os.getcwd(), str(script.resolve()), *arguments],
            script,
            timeout_s,
        )
        try:
            answer = msgspec.msgpack.decode(answer_file.read_bytes(), type=ScriptAnswer)
        except (OSError, msgspec.MsgspecError):
            raise CommandError(
                f"{script} ended with status {status} and left no profile."
            ) from None
    if answer.profile is None:
        without = "" if answer.has_gpu else " torch sees no GPU here."
        raise CommandError(f"{script} gave no profile: {answer.problem}.{without}")
    return answer.profile, answer.process, answer.has_gpu


def _run(words: Sequence[str], script: Path, timeout_s: float) -> int:
    # our own modules come first; what the script imports is put before when it runs
    places = [own_path(), os.environ.get("PYTHONPATH", "")]
    child = subprocess.Popen(
        [sys.executable, "-m", _MODULE, *words],
        cwd=NOWHERE,
        env={
            **os.environ,
            **early_variables(script.read_text(encoding="utf-8", errors="replace")),
            "PYTHONPATH": os.pathsep.join(filter(None, places)),
        },
        stdin=subprocess.DEVNULL,
        stdout=_STDERR,
        start_new_session=True,
    )
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"{script} still ran after {timeout_s:g} s: let it do fewer steps, or give "
            "it more time by --timeout."
        ) from None
    finally:
        # what it started ends, too
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()


def early_variables(source: str) -> dict[str, str]:
    """Give what a script sets for CUDA and torch: it is profiled after their start.

    Only lines such as `os.environ["CUDA_VISIBLE_DEVICES"] = "1"` outside of all blocks
    are read.
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # the run says what is wrong
        return {}
    variables = {}
    for statement in body:
        match statement:
            case ast.Assign(
                targets=[
                    ast.Subscript(
                        value=ast.Attribute(attr="environ"),
                        slice=ast.Constant(value=str(name)),
                    )
                ],
                value=ast.Constant(value=str(value)),
            ) if name.startswith(_EARLY) and "\0" not in value:
                variables[name] = value
    return variables
