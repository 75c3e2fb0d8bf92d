"""`%gpuadvise` and `%gpuapply`: the checklist and the edited cell of a profile."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from warpbook.kernel.profile.gpuprof import CellProfiler
from warpbook.kernel.runs.profile import Advice, Profile, profile_in


class ReportMagics:
    """Finds the profile that is meant."""

    def __init__(self, shell: Any, profiler: CellProfiler) -> None:
        """Take the shell with its variables, and who keeps the newest profiles."""
        self._shell = shell
        self._profiler = profiler

    @magic_arguments()
    @argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="The variable that holds a profile; the cell that was profiled last if "
        "left out.",
    )
    def gpuadvise(self, line: str) -> Advice:
        """Go through the optimisation checklist with what was measured."""
        name = parse_argstring(ReportMagics.gpuadvise, line).name
        return self._profile(name).advise()

    @magic_arguments()
    def gpuapply(self, line: str) -> None:
        """Put the edited cell of the newest `%%gpuprof --apply` into the next cell."""
        parse_argstring(ReportMagics.gpuapply, line)
        newest = self._profiler.newest
        edited = None if newest is None else newest.figures.edited
        if edited is None or not edited.code:
            raise UsageError(
                "The newest profile has no edited cell: begin one with "
                "%%gpuprof --apply."
            )
        self._shell.set_next_input("\n".join(filter(None, (edited.once, edited.code))))

    def _profile(self, name: str | None) -> Profile:
        if name is None:
            newest = self._profiler.newest
            if newest is None:
                raise UsageError(
                    "No cell was profiled yet, or the last one gave no profile of its "
                    "whole run: begin one with %%gpuprof."
                )
            return newest
        try:
            return profile_in(self._shell.user_ns.get(name))
        except TypeError:
            raise UsageError(
                f"%gpuadvise wants a variable that holds a profile, and {name!r} does "
                "not: keep one with %%gpuprof -o NAME."
            ) from None
