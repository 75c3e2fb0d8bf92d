"""What `%%gpuprof` shows: the figures of a cell, or why there are none."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook.kernel.link.server_link import LinkError, ServerLink
from warpbook.reports.checklist import checklist_html, checklist_lines
from warpbook.reports.html import comparison_html, notice_html, report_html
from warpbook.reports.labs import LABS
from warpbook.reports.text import comparison_lines, report_text
from warpbook_monitors.plain_text import joined
from warpbook_profiler.checklist.answers import Checklist
from warpbook_profiler.checklist.process import ProcessState
from warpbook_profiler.compare.clocks import BothClocks, Clocks, clocks_of
from warpbook_profiler.compare.compare import Comparison, compare
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.live import Live
from warpbook_profiler.report.comparison_view import shown
from warpbook_profiler.report.profile_view import view_of

#: names a report to warpbook's JupyterLab extension; others show the HTML beside it
_REPORT_MIME = "application/vnd.warpbook.report+json"


class Profile:
    """The profile of one run of a cell.

    Every figure of `CellProfile` is an attribute: `profile.gpu_busy_ns`,
    `profile.kernels`, `profile.completeness.warnings`, ...
    """

    def __init__(
        self,
        figures: CellProfile,
        title: str,
        window_ms: tuple[float, float] = (0.0, 0.0),
        gpus: tuple[str, ...] = (),
    ) -> None:
        """Keep the figures and what the run is known by.

        Args:
            figures: what the run adds up to.
            title: what it is called: `-o`'s name, or a line of the code.
            window_ms: when it ran, as Unix time.
            gpus: UUIDs of the GPUs that worked.
        """
        self.figures = figures
        self.title = title
        self.window_ms = window_ms
        self.gpus = gpus
        #: how it differs from the same cell's run before, in one line
        self.notes: tuple[str, ...] = ()
        #: of the notebook, where the frontend told it
        self.cell_id: str | None = None
        #: of its report on the server, whose figures a page can show below this one
        self.report_id: str | None = None
        #: of a long cell, all its windows; these figures are of one
        self.live: Live | None = None
        #: the code that ran, and what its process had set; None of a trace file
        self.code: str | None = None
        self.process: ProcessState | None = None

    def __getattr__(self, name: str) -> Any:
        if name in CellProfile.__struct_fields__:
            return getattr(self.figures, name)
        raise AttributeError(
            f"A profile has no figure {name!r}. Tab completes those it has; "
            "`before.diff(after)` compares two."
        )

    def __dir__(self) -> list[str]:
        """List the figures too, so that they complete."""
        return [*super().__dir__(), *CellProfile.__struct_fields__]

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, as JSON would hold them."""
        plain = msgspec.json.decode(msgspec.json.encode(self.figures))
        return {"title": self.title, **plain}

    def diff(self, other: Profile) -> Difference:
        """Compare with another profile: this one is before, the other one after.

        The server is asked for clocks and temperature of both runs.

        Raises:
            TypeError: the other holds no profile.
        """
        other = profile_in(other)
        link = ServerLink()
        clocks = (_clocks(self, link), _clocks(other, link))
        return Difference(self.compared(other, clocks), other.title)

    def compared(self, other: Profile, clocks: BothClocks = (None, None)) -> Comparison:
        """Compare with another profile, without asking the server."""
        is_one_cell = self.cell_id is not None and self.cell_id == other.cell_id
        return compare(self.figures, other.figures, clocks, is_one_cell=is_one_cell)

    def advise(self) -> Advice:
        """Go through the optimisation checklist with what was measured."""
        # it needs NumPy, which takes long to import
        from warpbook_profiler.techniques.registry import checklist

        return Advice(checklist(self.figures, self.code, self.process), self.title)

    def __repr__(self) -> str:
        return report_text(view_of(self.figures, LABS), self.notes)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {
            "text/plain": report_text(view_of(self.figures, LABS), self.notes),
            "text/html": report_html(self.figures, self.title, self.notes),
        }
        if self.report_id is not None:
            bundle[_REPORT_MIME] = {"id": self.report_id}
        return bundle


def profile_in(value: object) -> Profile:
    """Give a profile, or the one that a profiled block holds.

    Raises:
        TypeError: there is none.
    """
    # of `with warpbook.profile() as NAME`
    profile = getattr(value, "profile", value)
    if not isinstance(profile, Profile):
        raise TypeError(f"Not a profile to compare with: {profile!r:.100}.")
    return profile


def _clocks(profile: Profile, link: ServerLink) -> Clocks | None:
    """Ask how the GPUs ran meanwhile; None where nobody knows."""
    if not profile.gpus:
        return None
    try:
        span = link.span(*profile.window_ms)
    except LinkError:
        return None
    # as the server calls them
    return clocks_of(span.devices, [f"gpu:{uuid}" for uuid in profile.gpus])


class Advice:
    """The optimisation checklist with its answers, as a notebook shows it."""

    def __init__(self, figures: Checklist, title: str) -> None:
        self.figures = figures
        self.title = title

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries and lists, as `advise --json` does."""
        plain: dict[str, Any] = msgspec.to_builtins(self.figures)
        return plain

    def __repr__(self) -> str:
        return joined(checklist_lines(self.figures))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "text/html": checklist_html(self.figures, self.title),
        }


class Notice:
    """Something the person should know, shown below the cell."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __repr__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.message, "text/html": notice_html(self.message)}


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
