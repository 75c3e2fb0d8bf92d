"""What a report promises of a change, to stand beside what was measured."""

from __future__ import annotations

from warpbook_monitors.trace.cell_profile import CellProfile

#: by change: kinds of findings whose advice it is, and the labs that teach it
_ADVISED_BY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tf32": (("compute-bound",), ("mixed-precision",)),
    "bf16": (("compute-bound",), ("mixed-precision",)),
    "pinned": (("transfer-bound",), ("host-device-copies",)),
    "cuda-graph": (("launch-bound", "host-bound"), ("cuda-graphs",)),
}


def promised_speed(profile: CellProfile, name: str) -> tuple[float, float] | None:
    """Give how many times as fast the cell should be, at least and at most.

    A finding's bound is what is left of the bare run without its cause, so it promises
    nothing more than "at most". None where no advice of the report is this change, or
    the bare run is not known.
    """
    if profile.bare is None or name not in _ADVISED_BY:
        return None
    kinds, labs = _ADVISED_BY[name]
    for finding in profile.findings:
        is_advised = finding.kind in kinds and finding.lab in labs
        if is_advised and finding.bound_ns:
            return 1.0, max(profile.bare.time_ns / finding.bound_ns, 1.0)
    return None
