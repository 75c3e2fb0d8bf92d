"""Runs a script as itself under the profiler: `python -m` in a process of its own.

    python -m warpbook_profiler.files.script_run ANSWER FOLDER SCRIPT [ARGUMENT ...]

ANSWER is the file that the answer is written to, in msgpack; FOLDER is where the script
runs. What it prints goes where this process's output goes.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import torch

from warpbook_monitors.plain_text import bounded
from warpbook_profiler.advice.code.cell_code import MOST_CHARACTERS
from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.checklist.process import state_of_this_process
from warpbook_profiler.events.columns import Category, Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.file_profile import profile_of
from warpbook_profiler.files.script_answer import ScriptAnswer
from warpbook_profiler.model.errors import TraceError

_STEP = "Optimizer.step#"
#: of fewer steps the first is not left out
_LEAST_STEPS = 3


def after_beginnings(events: Columns, run: Run) -> tuple[Columns, Run]:
    """Leave out what comes before the first kernel, or before the second step.

    Args:
        events: of the whole script.
        run: of the same.
    """
    begin_ns, note = _begin(events)
    if begin_ns is None:
        return events, run
    begin_ns = max(begin_ns, run.start_ns)
    return events.where(events.start_ns >= begin_ns), replace(
        run, start_ns=begin_ns, notes=(*run.notes, note)
    )


def _begin(events: Columns) -> tuple[int | None, str]:
    operators = events.only(Category.OPERATOR)
    is_step = [name.startswith(_STEP) for name in operators.names]
    steps = operators.where(np.array(is_step or [False])[operators.name])
    if len(steps) >= _LEAST_STEPS:
        note = (
            f"Looked at is what follows the first of {len(steps):,} steps of the "
            "optimizer."
        )
        return int(steps.end_ns[0]), note
    kernels = events.only(Category.KERNEL)
    if not len(kernels):
        return None, ""
    api = events.only(Category.API)
    launches = api.where(api.correlation == kernels.correlation[0])
    launch_ns = int((launches if len(launches) else kernels).start_ns[0])
    around = (operators.start_ns <= launch_ns) & (operators.end_ns >= launch_ns)
    begin_ns = int(operators.start_ns[around].min(initial=launch_ns))
    return begin_ns, "Looked at is what the script does from its first kernel on."


_MOST_WORDS = 300


class ScriptFailed(Exception):
    """The script ended by an error of its own."""


def main(answer: Path, folder: str, script: str, arguments: list[str]) -> None:
    """Run a script and write the answer."""
    os.chdir(folder)
    sys.argv = [script, *arguments]
    # in the place of the folder that this process was started in
    sys.path[0] = str(Path(script).resolve().parent)
    text = Path(script).read_text(encoding="utf-8", errors="replace")
    source = text[:MOST_CHARACTERS]
    has_gpu = torch.cuda.is_available()
    try:
        events, run = _recorded(script)
    except (ScriptFailed, TraceError) as error:
        script_answer = ScriptAnswer(has_gpu=has_gpu, problem=str(error))
    else:
        profile = profile_of(events, replace(run, source=source)).profile
        script_answer = ScriptAnswer(profile, state_of_this_process(), has_gpu)
    answer.write_bytes(msgspec.msgpack.encode(script_answer))


def _recorded(script: str) -> tuple[Columns, Run]:
    """Run the script, and give what is looked at of it."""
    capture = Capture()
    capture.start()
    try:
        _run(script)
    except BaseException:
        capture.discard()
        raise
    return after_beginnings(*capture.stop())


def _run(script: str) -> None:
    """Run it as Python would.

    Raises:
        ScriptFailed: it raised, or ended with a status that is no success.
    """
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            raise ScriptFailed(f"it ended: {bounded(end.code, _MOST_WORDS)}") from None
        if end.code:
            raise ScriptFailed(f"it ended with status {end.code}") from None
    except BaseException as error:  # noqa: BLE001 - whatever the script raises
        # without the frames of this module and of runpy
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != script:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        said = bounded(f"{type(error).__name__}: {error}", _MOST_WORDS)
        raise ScriptFailed(said) from None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])
