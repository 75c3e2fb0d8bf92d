"""One recording of the code that runs now: started, stopped, then added up."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.errors import CaptureFailed

if TYPE_CHECKING:
    from warpbook_profiler.events.columns import Columns
    from warpbook_profiler.events.run import Run
    from warpbook_profiler.model.change import Change

_TRIALS = 1000
#: fewer are read in some seconds
_MANY_EVENTS = 100_000


def _print_many(events: int) -> None:
    """Say why the notebook is busy after the cell."""
    if events >= _MANY_EVENTS:
        sys.stdout.write(f"Reading {events:,} events of the profile.\n")
        sys.stdout.flush()


class LineNotes:
    """Which line the code came to, and when (Unix time), in order."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.times_ns: list[int] = []

    def at(self, line: int) -> None:
        """Note that the code comes to this line now."""
        self.lines.append(line)
        self.times_ns.append(time.time_ns())


class Recording:
    """The profiler at work; what it recorded is kept until nobody wants it."""

    def __init__(self, memory: bool, shapes: bool = True) -> None:
        """Prepare.

        Args:
            memory: record each allocation.
            shapes: record what each operator is called with.

        Raises:
            CaptureFailed: there is no torch.
        """
        began_ns = time.perf_counter_ns()
        with _torch_or_remedy():
            from warpbook_profiler.capture.kineto import Capture
        self._capture = Capture(memory, shapes)
        self._import_ns = time.perf_counter_ns() - began_ns
        self.notes = LineNotes()

    def start(self) -> None:
        """Begin.

        Raises:
            TraceError: another profiler runs, or torch refused.
        """
        self._capture.start()

    def code_begins(self) -> None:
        """Leave out of the window what IPython did since the start."""
        self._capture.code_begins()

    def code_ends(self, at_ns: int) -> None:
        """Note what the code took so far; it may have ended (Unix time)."""
        self._capture.code_ends(at_ns)

    def stop(self, code_end_ns: int | None = None) -> RunRecord:
        """End it.

        Args:
            code_end_ns: when the code ended, unless it did just now (Unix time).

        Raises:
            CaptureFailed: there is nothing that can be believed.
        """
        events, run = self._capture.stop(code_end_ns, _print_many)
        if run.set_up is not None:
            set_up = msgspec.structs.replace(run.set_up, imports_ns=self._import_ns)
            run = replace(run, set_up=set_up)
        if self.notes.lines:
            from warpbook_profiler.events import marks as marking

            marks = marking.make_marks(self.notes.lines, self.notes.times_ns)
            run = replace(run, marks=marks)
        return RunRecord(events, run, self._capture)

    def discard(self) -> None:
        self._capture.discard()


@dataclass(frozen=True)
class RunRecord:
    """What one recording holds."""

    events: Columns
    run: Run
    _capture: Any

    @property
    def wall_ns(self) -> int:
        """Give how long the code took, with the GPU's work."""
        return self.run.end_ns - self.run.start_ns

    def figures(self, source: Sequence[str]) -> CellProfile:
        """Add the events up; the source is shown beside its lines."""
        from warpbook_profiler.facts.trace import Trace
        from warpbook_profiler.verdict import analysis

        trace = Trace(self.events, self.run)
        figures: CellProfile = analysis.profile(trace)
        if self.run.marks is None:
            return figures
        from warpbook_profiler.facts import lines

        return msgspec.structs.replace(
            figures,
            lines=lines.by_line(trace, source),
            lines_cost_ns=round(len(self.run.marks.line) * _note_ns()),
        )

    def called_edits(
        self, called: Mapping[str, str], names: Collection[str]
    ) -> dict[str, tuple[Change, ...]]:
        """Give edits of functions that the code calls; see `called_edits`."""
        from warpbook_profiler.facts.trace import Trace
        from warpbook_profiler.verdict.called_edits import called_edits

        return called_edits(Trace(self.events, self.run), called, names)

    def judged_by_stalls(self, figures: CellProfile) -> CellProfile:
        """Have its stalls tell what limits kernels of which nothing else does."""
        if figures.stalls is None or not figures.stalls.kernels:
            return figures
        from warpbook_profiler.verdict import analysis

        judged = analysis.analyse(self.events, replace(self.run, stalls=figures.stalls))
        return msgspec.structs.replace(
            figures,
            verdict=judged.verdict,
            findings=judged.findings,
            metrics=judged.metrics,
            kernels=judged.kernels,
        )

    def save(self, path: str) -> None:
        """Write the Chrome trace, before any other recording starts.

        Raises:
            CaptureFailed: it could not be written.
        """
        self._capture.save(path)


def _note_ns() -> float:
    """Measure what noting one line takes."""
    notes = LineNotes()
    began_ns = time.perf_counter_ns()
    for line in range(_TRIALS):
        notes.at(line)
    return (time.perf_counter_ns() - began_ns) / _TRIALS


def wait_for_gpu() -> None:
    """Wait for all work of this process on its GPUs.

    Raises:
        CaptureFailed: there is no torch, or the GPU is in no state to be waited for.
    """
    with _torch_or_remedy():
        from warpbook_profiler.capture import torch_gpus
    torch_gpus.wait_for_gpu()


@contextlib.contextmanager
def _torch_or_remedy() -> Iterator[None]:
    """Around an import of torch, which takes long and may not be there."""
    try:
        yield
    except (ImportError, OSError) as problem:
        raise CaptureFailed(
            f"%%gpuprof needs PyTorch in this kernel's environment ({sys.prefix}), "
            f"and it can't be imported ({problem}). Run %pip install torch, then "
            "restart the kernel."
        ) from None
