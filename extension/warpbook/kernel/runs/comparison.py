"""What `a.diff(b)` shows: two profiles beside one another."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook.reports.html import comparison_html
from warpbook.reports.text import comparison_lines
from warpbook_monitors.plain_text import joined
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.report.comparison_view import shown


class Difference:
    """The comparison of two profiles.

    Every part of `Comparison` is an attribute: `difference.verdict`, `difference.time`,
    `difference.likeness`, `difference.kernels`, ... each row with `change_ns`.
    """

    def __init__(self, figures: Comparison, title: str) -> None:
        self.figures = figures
        self.title = title

    def __getattr__(self, name: str) -> Any:
        if name in Comparison.__struct_fields__:
            return getattr(self.figures, name)
        raise AttributeError(f"A comparison has no {name!r}.")

    def __dir__(self) -> list[str]:
        """List the parts too, so that they complete."""
        return [*super().__dir__(), *Comparison.__struct_fields__]

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, as JSON would hold them."""
        plain = msgspec.json.decode(msgspec.json.encode(self.figures))
        return {"title": self.title, **plain}

    def __repr__(self) -> str:
        return joined(comparison_lines(shown(self.figures)))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        label = f"Comparison of {self.title}"
        html = comparison_html(shown(self.figures), label)
        return {"text/plain": repr(self), "text/html": html}
