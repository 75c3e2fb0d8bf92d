"""What was measured of each cell, and the file that keeps it between calls."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.open_exam.score import GAIN

#: a kernel is as fast as before within this factor, or within its own spread
AS_FAST = 1.1


class Times(Struct, frozen=True):
    """Of runs without the profiler, each waited for."""

    median_ms: float
    least_ms: float
    most_ms: float


class AdvisedChange(Struct, frozen=True):
    """A change of a profile, in the order of the report."""

    name: str
    basis: str
    sentence: str
    time_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    speed_low: float | None = None
    speed_high: float | None = None
    #: the whole cell after it; empty without an edit
    code: str = ""

    @property
    def is_promise(self) -> bool:
        """Tell whether it says that a gain is sure."""
        return self.basis == "predicted" and (self.speed_low or 0.0) >= GAIN


class ProfileFigures(Struct, frozen=True):
    """What one profile says."""

    kind: str | None
    sentence: str
    wall_ms: float
    profiler_ms: float
    refusal: str
    #: how the bare time is known, and its range; None where the trace does not tell
    bare_basis: str | None
    bare_ms: float | None
    bare_low_ms: float | None
    bare_high_ms: float | None
    changes: tuple[AdvisedChange, ...]
    #: "between A and B", where the ends of the range differ
    between: tuple[str, ...] = ()


class TrialFigures(Struct, frozen=True):
    """What `--try` measured."""

    name: str
    outcome: str
    sentence: str
    #: how many times as fast, at least and at most; None where it was refused
    speed_low: float | None = None
    speed_high: float | None = None
    #: its results are not those of the cell, beyond what its dtype rounds
    differs: bool = False
    #: what of the person's state is not as it was
    changed_state: tuple[str, ...] = ()


class AppliedFigures(Struct, frozen=True):
    """What `--apply all` made of the cell."""

    changes: tuple[str, ...]
    sentence: str
    #: how many times as fast, as measured; 1 where no edit is shown as better
    speed: float
    #: of the cell, the expert's and the edited one, in turns; None without an edit
    side_by_side: tuple[Times, Times, Times] | None = None
    #: what of the person's state is not as it was
    changed_state: tuple[str, ...] = ()


class EditFigures(Struct, frozen=True):
    """A change's edit of the cell, run after the same setup as the cell."""

    name: str
    #: what raised in it; empty if it ran
    error: str = ""
    #: names whose values are not those of the cell
    differs: tuple[str, ...] = ()
    times: Times | None = None


class CellResult(Struct, frozen=True, kw_only=True):
    """One cell; what was not reached is None."""

    name: str
    gpu: str | None = None
    seconds: float = 0.0
    #: why it was left out here; empty if it ran
    left_out: str = ""
    #: what ended it; empty if all is well
    error: str = ""
    before: Times | None = None
    after: Times | None = None
    fixed: Times | None = None
    #: before the profiles, once more: what varies without them
    again: Times | None = None
    #: the changed cell, each time an execution in the notebook of its own
    fixed_alone: Times | None = None
    profiles: tuple[ProfileFigures, ...] = ()
    trial: TrialFigures | None = None
    applied: AppliedFigures | None = None
    #: of the report's first edit, of the change that the expert makes, and of each
    #: that promises a gain where the expert names none
    edits: tuple[EditFigures, ...] = ()
    #: what `--try` measured of such promises without an edit
    tried: tuple[TrialFigures, ...] = ()


Results = dict[str, CellResult]


def read_results(path: Path | None) -> Results:
    """Read the cells that an earlier call ran; none without a file."""
    if path is None or not path.exists():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=Results)


def write_results(path: Path | None, results: Results) -> None:
    """Write all of them; a call that is killed while it writes leaves the old file."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    beside.replace(path)
