"""The names of all changes, for options that are read before torch is loaded."""

from __future__ import annotations

#: in the order in which they are tried, the cheapest first
CHANGE_NAMES = (
    "tf32",
    "bf16",
    "fused-optimizer",
    "pinned",
    "channels-last",
    "cuda-graph",
    "compile",
)
#: asks for each change that applies
ALL = "all"
DEFAULT_TRY_SECONDS = 60.0
