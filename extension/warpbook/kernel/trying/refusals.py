"""Why nothing is tried: what a cell does that can't be undone, or has no room."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_profiler.model.errors import TraceError


class Refused(TraceError):
    """The cell, or one change to it, is not tried; the message says why."""


class NotIsolated(Refused):
    """The cell does something that can't be undone."""

    def __init__(self, reason: str, line: int | None = None, where: str = "") -> None:
        """Take the reason.

        Args:
            reason: what the cell does, to go after "the cell".
            line: in the cell, or in the function.
            where: the name of the function; empty in the cell itself.
        """
        place = "" if line is None else f"line {line}"
        if where:
            place = f"{place} of {where}" if place else where
        super().__init__(f"the cell {reason}" + (f" ({place})." if place else "."))


class NoRoom(Refused):
    """A copy of the state does not fit beside it."""


class StateLost(TraceError):
    """What the person had could not be put back."""

    def __init__(self, names: Sequence[str]) -> None:
        shown = ", ".join(names[:10])
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        super().__init__(
            f"After trials these are not as they were: {shown}{more}. Run the cells "
            "that make them again."
        )
