"""The cells of the exam, as they stand in the files beside this module."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from warpbook_monitors import toml_text
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.model.trials import Outcome

FOLDER = Path(__file__).parent / "cells"
#: what is asked of a change's time: "prediction": the GPU decides it; "bound": new code
#: of the host decides; "no gain": the change gains nothing
Judged = Literal["prediction", "bound", "no gain"]


class Cell(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A slow cell, and the same work as an expert writes it."""

    name: str
    #: verdicts that an expert accepts
    kinds: tuple[Kind, ...]
    #: names of changes that an expert accepts, first the one that `fast` makes; empty
    #: where there is nothing to gain, or the product has no name for the change
    changes: tuple[str, ...]
    #: the change in words
    expert: str
    judged: Judged
    setup: str
    slow: str
    fast: str
    fast_setup: str = "pass"
    #: the change that `--try` measures
    try_name: str | None = field(default=None, name="try")
    #: outcomes of it that are right
    try_outcomes: tuple[Outcome, ...] = ("faster",)
    #: modules without which the cell is left out
    needs: tuple[str, ...] = ()
    #: its libraries change what a kernel does with other cells
    own_kernel: bool = False

    def is_without_gain(self, change: str) -> bool:
        """Tell whether the expert says that this change gains nothing.

        A good cell has none at all that gains; of others some may be named.
        """
        named = not self.changes or change in self.changes
        return self.judged == "no gain" and named

    @property
    def source(self) -> str:
        """Give the cell as it is executed: it ends when the GPU's work does."""
        return f"{self.slow.strip()}\ntorch.cuda.synchronize()"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    cell: tuple[Cell, ...]


def load_cells(folder: Path = FOLDER) -> tuple[Cell, ...]:
    """Read all cells, ordered by file.

    Raises:
        ValueError: a file does not fit, or two cells have one name.
    """
    cells: list[Cell] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            cells += toml_text.decode(path.read_bytes(), _File).cell
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path.name}: {error}") from error
    names = [cell.name for cell in cells]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"Two cells have one name: {', '.join(repeated)}")
    return tuple(cells)


def chosen_cells(cells: tuple[Cell, ...], only: list[str]) -> tuple[Cell, ...]:
    """Give the cells with these names, or all without a name.

    Raises:
        ValueError: there is no cell of a name.
    """
    unknown = sorted(set(only) - {cell.name for cell in cells})
    if unknown:
        raise ValueError(f"No such cell: {', '.join(unknown)}")
    return tuple(cell for cell in cells if not only or cell.name in only)
