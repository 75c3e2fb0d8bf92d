"""What `a.diff(b)` shows: two profiles of the same code beside one another."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook.reports.html import document_html
from warpbook.reports.text import document_text
from warpbook_profiler.compare.compare import Comparison
from warpbook_profiler.compare.comparison_tables import comparison_tables


class Difference:
    """The comparison of two profiles.

    Every part of `Comparison` is an attribute: `difference.wall`, `difference.chance`,
    `difference.kernels`, ... each row with `change_ns`.
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
        figures = self.figures
        notes = (*figures.cautions, *figures.notes)
        return document_text(figures.sentence, notes, comparison_tables(figures))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        figures = self.figures
        html = document_html(
            figures.sentence,
            (*figures.cautions, *figures.notes),
            comparison_tables(figures),
            f"Comparison of {self.title}",
        )
        return {"text/plain": repr(self), "text/html": html}
