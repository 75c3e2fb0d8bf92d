"""Registers the magics with an IPython shell, and takes them away again."""

from __future__ import annotations

from typing import Any

from warpbook.kernel.gpu import Gpu
from warpbook.kernel.gpuprof import CellProfiler
from warpbook.kernel.server_link import ServerLink

_MAGICS = (("cell", "gpuprof"), ("line", "gpu"))
#: what each shell has loaded, to take it away again
_loaded: dict[int, CellProfiler] = {}


def load(shell: Any) -> None:
    """Register everything; loading twice changes nothing."""
    if id(shell) in _loaded:
        return
    link = ServerLink()
    profiler = CellProfiler(shell, link)
    shell.register_magic_function(profiler.gpuprof, "cell", "gpuprof")
    shell.register_magic_function(Gpu(link).gpu, "line", "gpu")
    profiler.install()
    _loaded[id(shell)] = profiler


def unload(shell: Any) -> None:
    """Unregister everything that `load` registered."""
    profiler = _loaded.pop(id(shell), None)
    if profiler is None:
        return
    profiler.remove()
    for kind, name in _MAGICS:
        shell.magics_manager.magics[kind].pop(name, None)
