"""Colours by their meaning, as frontend/style/colours.css has them for the page.

What is written once and read on any page, light or dark, has one colour for both.
"""

from __future__ import annotations

from warpbook_monitors.verdict_kinds import Kind

#: not explained, not known, or only for comparison
PLAIN = "#7f7f7f"
WARNING = "#b07000"
ERROR = "#d6453d"
GOOD = "#3a8f3a"
#: of the lines of one chart, by theme
SERIES = {
    "light": ("#2563a8", "#c8501e", "#1b8a5a", "#8a4fa8", "#a87b00"),
    "dark": ("#6ea8fe", "#ff9e64", "#5fd3a0", "#cf9bf0", "#e8c34a"),
}
#: of names in a flame graph and a timeline
BANDS = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2")
#: of what is computed with
DTYPES = {
    "FP64": "#8c564b",
    "FP32": "#1f77b4",
    "TF32": "#9467bd",
    "FP16": "#2ca02c",
    "BF16": "#d98200",
    "FP8": "#d62728",
    "FP4": "#17a2b8",
    "INT8": "#e377c2",
}
#: of what a model holds, by its letter; apart in brightness, too
HELD = {
    "W": "#2f6fb0",
    "G": "#d98200",
    "S": "#6fb4e0",
    "M": "#b9a15a",
    "A": "#2f9158",
    "C": "#2f9158",
    "T": "#8c5fb0",
}
_SYNC, _LAUNCH, _HOST, _TRANSFER = "#b8503f", "#0e8a8c", "#8a7a1f", "#9a62b8"
_COMMUNICATION, _MEMORY, _COMPUTE = "#6573d6", "#3c7ebb", "#2f9158"
_KINDS: dict[Kind | None, str] = {
    "sync-bound": _SYNC,
    "wait-bound": _SYNC,
    "launch-bound": _LAUNCH,
    "overhead-bound": _LAUNCH,
    "host-bound": _HOST,
    "python-bound": _HOST,
    "transfer-bound": _TRANSFER,
    "input-bound": _TRANSFER,
    "communication-bound": _COMMUNICATION,
    "thread-bound": _COMMUNICATION,
    "memory-bound": _MEMORY,
    "compute-bound": _COMPUTE,
    "operator-bound": _COMPUTE,
    "few-multiprocessors": "#a0705c",
}


def colour_of(kind: Kind | None) -> str:
    """Return the colour of a cause; None is not explained."""
    return _KINDS.get(kind, PLAIN)
