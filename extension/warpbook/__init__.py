"""A GPU lab inside JupyterLab: what the chip does, what holds a cell back.

`import warpbook` loads nothing but the version: a kernel never imports the server
part, a server never the kernel part, and each part comes when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpbook_monitors._version import __version__

if TYPE_CHECKING:
    from warpbook import labs
    from warpbook.kernel.profile.analyze import analyze
    from warpbook.kernel.profile.profile_block import profile
    from warpbook.kernel.runs.step import step
    from warpbook.kernel.telemetry.memory_calculator import memory
    from warpbook.kernel.telemetry.monitor import Monitor
    from warpbook_profiler.files.example import EXAMPLE_TRACE

__all__ = [
    "EXAMPLE_TRACE",
    "Monitor",
    "__version__",
    "analyze",
    "labs",
    "memory",
    "profile",
    "step",
]


def __getattr__(name: str) -> Any:
    """Give what a notebook uses, importing it on first use."""
    if name == "EXAMPLE_TRACE":
        from warpbook_profiler.files.example import EXAMPLE_TRACE

        return EXAMPLE_TRACE
    if name == "Monitor":
        from warpbook.kernel.telemetry.monitor import Monitor

        return Monitor
    if name == "analyze":
        from warpbook.kernel.profile.analyze import analyze

        return analyze
    if name == "labs":
        import warpbook.labs as labs

        return labs
    if name == "memory":
        from warpbook.kernel.telemetry.memory_calculator import memory

        return memory
    if name == "profile":
        from warpbook.kernel.profile.profile_block import profile

        return profile
    if name == "step":
        from warpbook.kernel.runs.step import step

        # once for each step of a training: it is looked up here only once
        globals()["step"] = step
        return step
    raise AttributeError(f"module 'warpbook' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext warpbook`: register the magics."""
    from warpbook.kernel.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext warpbook`: take them away again."""
    from warpbook.kernel.magics import unload

    unload(shell)


def _jupyter_server_extension_points() -> list[dict[str, object]]:
    from warpbook.server.app import WarpbookApp

    return [{"module": "warpbook", "app": WarpbookApp}]
