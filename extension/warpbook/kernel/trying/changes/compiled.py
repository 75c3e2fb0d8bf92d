"""Modules compiled by torch.compile."""

from __future__ import annotations

import contextlib
import importlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from warpbook.kernel.trying.changes.change import Applied, TriedCell


class Compile:
    """Each module that no other module called is replaced by its compiled form."""

    name: ClassVar[str] = "compile"
    advice: ClassVar[str] = "Write model = torch.compile(model) once, before the loop."
    warm_ups: ClassVar[int] = 3

    def __init__(self) -> None:
        """Compile nothing yet."""
        self._compiled: list[tuple[torch.nn.Module, Callable[..., Any]]] = []

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        modules = cell.facts.modules
        if not modules:
            return (
                "no torch.nn.Module was called; a function is compiled by hand, as "
                "torch.compile(f)."
            )
        if not any(map(cell.is_kept, modules)):
            return "the cell makes its modules itself: move that to a cell before it."
        if all(map(_is_compiled, modules)):
            return "its modules are compiled already."
        return _no_compiler(cell.facts.device)

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Have calls of the modules go to what was compiled."""
        if not self._compiled:
            # compiling `_call_impl`, as Module.compile() does, skips nn.Sequential
            self._compiled = [
                (module, torch.compile(module.forward))
                for module in cell.facts.modules
                if cell.is_kept(module) and not _is_compiled(module)
            ]
        before = [vars(module).get("forward") for module, _ in self._compiled]
        try:
            for module, compiled in self._compiled:
                vars(module)["forward"] = compiled
            yield Applied(cell.run)
        finally:
            for (module, _), then in zip(self._compiled, before, strict=True):
                if then is None:
                    # the class has it
                    vars(module).pop("forward", None)
                else:
                    vars(module)["forward"] = then


def _is_compiled(module: torch.nn.Module) -> bool:
    is_wrapper = type(module).__name__ == "OptimizedModule"
    return is_wrapper or getattr(module, "_compiled_call_impl", None) is not None


def _no_compiler(device: str) -> str | None:
    """Say which compiler is missing; None if there is one."""
    if device == "cuda":
        try:
            importlib.import_module("triton")
        except ImportError as problem:
            return f"torch.compile needs Triton, which can't be imported ({problem})."
    # Triton compiles its launcher, too
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cc", "gcc", "clang"))):
        return "torch.compile needs a C++ compiler, and none is in PATH."
    return None
