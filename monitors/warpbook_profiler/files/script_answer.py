"""What the process that ran a script answers; this module needs no NumPy, no torch."""

from __future__ import annotations

from msgspec import Struct

from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.model.cell_profile import CellProfile


class ScriptAnswer(Struct, frozen=True):
    """A profile, or why there is none."""

    profile: CellProfile | None = None
    process: ProcessState = ProcessState()
    #: torch sees a GPU that it can use
    has_gpu: bool = False
    problem: str = ""
