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
import torch

from warpbook_monitors.plain_text import bounded
from warpbook_profiler.advice.cell_code import MOST_CHARACTERS
from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.checklist.process import state_of_this_process
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.file_profile import profile_of
from warpbook_profiler.files.script_answer import ScriptAnswer
from warpbook_profiler.files.script_window import after_beginnings
from warpbook_profiler.model.errors import TraceError

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
