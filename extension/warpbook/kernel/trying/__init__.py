"""Changes to a cell that are tried on copies of its state, and measured.

What is tried is in `warpbook_profiler.techniques`; how it is isolated is here.

Imports no room beside it.
"""

from __future__ import annotations

#: asks for each change that applies
ALL = "all"
DEFAULT_TRY_SECONDS = 60.0
