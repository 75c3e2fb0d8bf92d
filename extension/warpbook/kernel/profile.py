"""What `%%gpuprof` shows: the figures of a cell, or why there are none."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook.kernel.report_html import notice_html, report_html
from warpbook.kernel.report_text import report_text
from warpbook_monitors.trace.cell_profile import CellProfile


class Profile:
    """The profile of one run of a cell.

    Every figure of `CellProfile` is an attribute: `profile.gpu_busy_ms`,
    `profile.kernels`, `profile.completeness.warnings`, ...
    """

    def __init__(
        self,
        figures: CellProfile,
        title: str,
        window_ms: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """Keep the figures, the code's first line, and when it ran (Unix time)."""
        self.figures = figures
        self.title = title
        self.window_ms = window_ms

    def __getattr__(self, name: str) -> Any:
        """Give a figure."""
        if name in CellProfile.__struct_fields__:
            return getattr(self.figures, name)
        raise AttributeError(f"A profile has no figure {name!r}.")

    def __dir__(self) -> list[str]:
        """List the figures too, so that they complete."""
        return [*super().__dir__(), *CellProfile.__struct_fields__]

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, as JSON would hold them."""
        plain = msgspec.json.decode(msgspec.json.encode(self.figures))
        return {"title": self.title, **plain}

    def __repr__(self) -> str:
        """Write the report as text."""
        return report_text(self.figures)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": report_text(self.figures),
            "text/html": report_html(self.figures, self.title),
        }


class Notice:
    """Something the person should know, shown below the cell."""

    def __init__(self, message: str) -> None:
        """Keep the message, in words."""
        self.message = message

    def __repr__(self) -> str:
        """Write the message."""
        return self.message

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.message, "text/html": notice_html(self.message)}
