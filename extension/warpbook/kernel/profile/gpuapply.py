"""`%gpuapply`: the edited cell of the newest report, as the next input."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import magic_arguments, parse_argstring

from warpbook.kernel.profile.gpuprof import CellProfiler


class GpuApply:
    """Knows the newest report, and where the next input goes."""

    def __init__(self, shell: Any, profiler: CellProfiler) -> None:
        """Take the shell, and who keeps the newest profile."""
        self._shell = shell
        self._profiler = profiler

    @magic_arguments()
    def gpuapply(self, line: str) -> None:
        """Put the edited cell of the newest `%%gpuprof --apply` into the next cell."""
        parse_argstring(GpuApply.gpuapply, line)
        newest = self._profiler.newest
        edited = None if newest is None else newest.figures.edited
        if edited is None or not edited.code:
            raise UsageError(
                "The newest profile has no edited cell: begin one with "
                "%%gpuprof --apply."
            )
        self._shell.set_next_input("\n".join(filter(None, (edited.once, edited.code))))
