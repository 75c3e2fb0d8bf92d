"""An edited cell beside the cell before the edit, both on copies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from warpbook.kernel.trying.copies import PROBLEMS, copies, raised, trial_of
from warpbook.kernel.trying.outputs import Outputs, compare
from warpbook.kernel.trying.refusals import Refused, StateLost
from warpbook.kernel.trying.source import read_body
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.trials import (
    OutputDifference,
    Promise,
    Trial,
    refused,
)
from warpbook_profiler.techniques.registry import technique_of
from warpbook_profiler.techniques.technique import Applied

#: runs of an edited cell before it is measured, as `--try` has for what it compiles
_WARM_UPS = 3


@dataclass(frozen=True)
class EditedCell:
    """Sources of a cell, and what is known of its edits."""

    before: str
    after: str
    #: of the changes that lead from the one to the other
    changes: Sequence[str]


def try_edit(
    shell: Any,
    cell: EditedCell,
    name: str,
    seconds: float,
    profile: CellProfile,
    promise: Promise | None = None,
) -> tuple[Trial, tuple[int, ...]]:
    """Measure an edited cell; give the trial, and the times of its runs in ns.

    Args:
        shell: in whose namespace both run.
        cell: before and after the edit.
        name: what the trial is called.
        seconds: what it may take; a run that was begun is ended.
        profile: of the cell before the edit.
        promise: what the report says of it.

    Raises:
        StateLost: what the person had could not be put back.
    """
    try:
        bodies = [read_body(shell, source) for source in (cell.before, cell.after)]
        with copies(shell.user_ns, bodies, profile) as held:
            # a compiler that the edited cell calls would not compile below a scout
            before, _ = held.first_run(bodies[0], nullcontext())
            began_ns = time.perf_counter_ns()
            after, _ = held.first_run(bodies[1], nullcontext())
            first_ns = time.perf_counter_ns() - began_ns

            def unchanged() -> nullcontext[Applied]:
                return nullcontext(Applied(lambda: before.run(held.namespace)))

            def changed() -> nullcontext[Applied]:
                return nullcontext(Applied(lambda: after.run(held.namespace)))

            # the second tells how far unchanged runs differ
            expected, again = (held.look(unchanged) for _ in range(2))

            def results(outputs: Outputs) -> OutputDifference:
                # what an edit binds beside them is its own
                mine = {name: outputs[name] for name in outputs if name in expected}
                return compare(expected, mine, again, _rounding(cell.changes))

            times, difference = held.compared(
                unchanged, changed, results, _WARM_UPS, seconds
            )
    except StateLost:
        raise
    except Refused as problem:
        return refused(name, str(problem)), ()
    except PROBLEMS as problem:
        return refused(name, f"the edited cell {raised(problem)}."), ()
    trial = trial_of(name, "", times, difference, promise, first_ns)
    return trial, tuple(times.changed_ns)


def run_on_copies(
    shell: Any,
    source: str,
    profile: CellProfile,
    around: Callable[[Callable[[], Any]], Any],
) -> None:
    """Run a cell that is warm; then everything is put back.

    Args:
        shell: in whose namespace it runs.
        source: of the cell, which has run on copies before.
        profile: of the cell, perhaps before an edit.
        around: calls what it is given in the last run, and gives what that gives.

    Raises:
        Refused: it can't be run on copies, or raised.
        StateLost: what the person had could not be put back.
    """
    try:
        body = read_body(shell, source)
        with copies(shell.user_ns, (body,), profile) as held:
            once = body.compiled()

            def run() -> Any:
                return once.run(held.namespace)

            # what it compiles is compiled anew for a source that is read anew
            for _ in range(_WARM_UPS - 1):
                held.run(lambda: nullcontext(Applied(run)))
            held.run(lambda: nullcontext(Applied(lambda: around(run))))
    except (Refused, StateLost):
        raise
    except PROBLEMS as problem:
        raise Refused(f"the edited cell {raised(problem)}.") from None


def _rounding(changes: Sequence[str]) -> float:
    """Give what results may differ by where changes compute in smaller dtypes."""
    techniques = ((name, technique_of(name)) for name in changes)
    return max(
        (of.roundings.get(name, 0.0) for name, of in techniques if of is not None),
        default=0.0,
    )
