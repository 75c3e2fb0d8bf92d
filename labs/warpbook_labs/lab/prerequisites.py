"""What labs are done before others, as their `after` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def cycles(after: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Give the ids of labs that none can begin: each waits for one of the others.

    Args:
        after: of each lab's id, the ids of labs to have done before.
    """
    waiting = {lab: set(needed) & set(after) for lab, needed in after.items()}
    while ready := {lab for lab, needed in waiting.items() if not needed}:
        waiting = {
            lab: needed - ready for lab, needed in waiting.items() if lab not in ready
        }
    return tuple(waiting)
