"""One cause of a run without GPU work, with the change that would take it away."""

from __future__ import annotations

from dataclasses import dataclass

from warpbook_monitors.verdict_kinds import Kind


@dataclass(frozen=True)
class Cause:
    """One cause, and the change that would take it away."""

    kind: Kind
    explains_ns: int
    evidence: str
    #: what documents call the change, and what to do
    name: str
    title: str
    #: no shorter is the part that the cause explains; None where that is not known
    left_ns: int | None
    #: what decides how much more it takes
    reason: str = ""
    operator: str | None = None
    #: what the cell begins with after the change, "torch.set_num_threads(1)"
    setting: str = ""
    #: processes that load for its DataLoader after the change
    workers: int = 0
    line: int | None = None
