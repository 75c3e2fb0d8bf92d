"""What every change has: a name, the cells that it fits, and how it is applied."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch

from warpbook.kernel.trying.reach import Reached
from warpbook.kernel.trying.scout import Facts
from warpbook.kernel.trying.source import Body, RunnableBody


def _nothing() -> None:
    """Results are where the body puts them."""


@dataclass(frozen=True)
class Applied:
    """A cell that is changed for the moment."""

    run: Callable[[], Any]
    #: puts results where the unchanged body would, before they are looked at
    publish: Callable[[], None] = _nothing


@dataclass(frozen=True)
class TriedCell:
    """A cell whose body runs on copies, and what it was seen to do."""

    body: Body
    plain: RunnableBody
    namespace: dict[str, Any]
    reached: Reached
    facts: Facts

    def run(self) -> Any:
        """Run the body as it is."""
        return self.plain.run(self.namespace)

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[Applied]:
        """Change nothing."""
        yield Applied(self.run)

    def is_kept(self, value: object) -> bool:
        """Tell whether an object was there before the run: then it can be changed."""
        known: tuple[object, ...] = ()
        if isinstance(value, torch.nn.Module):
            known = tuple(self.reached.modules)
        elif isinstance(value, torch.optim.Optimizer):
            known = tuple(self.reached.optimizers)
        return any(item is value for item in known)


class Change(Protocol):
    """One change; a new object for each cell."""

    name: ClassVar[str]
    #: what to write in the cell, as a sentence
    advice: ClassVar[str]
    #: runs before it is measured, in which things are compiled and chosen
    warm_ups: ClassVar[int]

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell; None if it does."""

    def applied(self, cell: TriedCell) -> AbstractContextManager[Applied]:
        """Apply it for one run of the cell, and undo it afterwards."""


def on_gpu_only(cell: TriedCell) -> str | None:
    """Say that a change needs a GPU, where the cell used none."""
    if cell.facts.device != "cuda":
        return "the cell computes nothing on a GPU."
    return None
