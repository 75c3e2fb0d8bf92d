"""Registers the magics with an IPython shell, and takes them away again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook.kernel.labs.lab_magic import lab
from warpbook.kernel.link.machine_feed import MachineFeed
from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.profile.gpulease import gpulease
from warpbook.kernel.profile.gpuprof import CellProfiler
from warpbook.kernel.profile.gpuwatch import GpuWatch
from warpbook.kernel.profile.report_magics import ReportMagics
from warpbook.kernel.runs.bare_times import CellTimes
from warpbook.kernel.runs.code_span import CodeSpan
from warpbook.kernel.telemetry.gpu import Gpu
from warpbook.kernel.telemetry.out_of_memory import OutOfMemoryWatch

_MAGICS = (
    ("cell", "gpuprof"),
    ("line", "gpuprof"),
    ("line", "gpu"),
    ("line", "gpuadvise"),
    ("line", "gpuapply"),
    ("line", "gpulease"),
    ("line", "gpuwatch"),
    ("cell", "lab"),
)
#: what each shell has loaded: how to take each hook away again
_loaded: dict[int, tuple[Callable[[], None], ...]] = {}


def load(shell: Any) -> None:
    """Register everything; loading twice changes nothing."""
    if id(shell) in _loaded:
        return
    link = ServerLink()
    span = CodeSpan(shell)
    span.install()
    times = CellTimes(shell, span)
    # before hooks that take their time at a cell's end
    times.install()
    profiler = CellProfiler(shell, link, span, times)
    shell.register_magic_function(profiler.gpuprof, "line_cell", "gpuprof")
    of_report = ReportMagics(shell, profiler)
    shell.register_magic_function(of_report.gpuadvise, "line", "gpuadvise")
    shell.register_magic_function(of_report.gpuapply, "line", "gpuapply")
    shell.register_magic_function(Gpu(link).gpu, "line", "gpu")
    watch = GpuWatch(shell, link, profiler.profile_next)
    shell.register_magic_function(watch.gpuwatch, "line", "gpuwatch")
    shell.register_magic_function(gpulease, "line", "gpulease")
    shell.register_magic_function(lab, "cell", "lab")
    profiler.install()
    out_of_memory = OutOfMemoryWatch(shell, link)
    out_of_memory.install()
    machine = MachineFeed(shell)
    machine.offer()
    _loaded[id(shell)] = (
        times.remove,
        profiler.remove,
        span.remove,
        out_of_memory.remove,
        watch.turn_off,
        machine.remove,
    )


def unload(shell: Any) -> None:
    removals = _loaded.pop(id(shell), None)
    if removals is None:
        return
    for remove in removals:
        remove()
    for kind, name in _MAGICS:
        shell.magics_manager.magics[kind].pop(name, None)
