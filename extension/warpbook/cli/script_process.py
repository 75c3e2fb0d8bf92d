"""A script that runs under the profiler, in a process of its own with an end."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path

import msgspec

from warpbook.cli.output import CommandError
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.files.script_answer import ScriptAnswer
from warpbook_profiler.model.cell_profile import CellProfile

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
