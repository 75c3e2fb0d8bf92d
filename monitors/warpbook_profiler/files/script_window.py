"""Which part of a whole script's run is looked at: its work, not its beginnings.

Imports, the making of a model and its way to the GPU happen once, and a first step
loads kernels and lets libraries choose. None of it is what a checklist is asked for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from warpbook_profiler.events.columns import Category, Columns
from warpbook_profiler.events.run import Run

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
