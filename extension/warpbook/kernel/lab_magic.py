"""`%%lab`: keeps a lab's source, written in a cell, in a file beside the notebook."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from pathlib import Path

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook import labs
from warpbook.kernel.profile import Notice


class LabMagic:
    """Remembers what it wrote, to know whether somebody else has written since."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._kept: dict[Path, str] = {}

    @magic_arguments()
    @argument("name", metavar="LAB", help="the lab's id")
    def lab(self, line: str, cell: str) -> None:
        """Keep the cell in the lab's own file."""
        asked = parse_argstring(LabMagic.lab, line)
        display(self._keep(asked.name, cell))

    def _keep(self, name: str, cell: str) -> Notice:
        found = labs.parts()
        if isinstance(found, Notice):
            return Notice(f"This cell was not kept. {found.message}")
        try:
            place = found.place_of(name).resolve()
            file, aside = found.keep_source(name, cell, self._kept.get(place))
        except found.PROBLEMS as problem:
            return Notice(f"This cell was not kept. {problem}")
        self._kept[place] = cell
        lines = len(cell.splitlines())
        told = f"Kept in {file}: {lines:,} lines. Nothing was run yet."
        if aside:
            told += f" What was there before is in {aside}."
        return Notice(told)
