"""`%%lab` saves a lab's source in a file and checks it."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook import labs
from warpbook.kernel.runs.profile import Notice


@magic_arguments()
@argument("name", metavar="LAB", help="the lab's id")
@argument("--no-check", action="store_true", help="save the cell, and check nothing")
def lab(line: str, cell: str) -> None:
    """Save the cell in the lab's own file, and check it against the cases shown."""
    options = parse_argstring(lab, line)
    parts = labs.parts()
    if isinstance(parts, Notice):
        display(Notice(f"This cell is not saved. {parts.message}"))
        return
    try:
        file, words = _keep(parts, options.name, cell)
    except parts.PROBLEMS as problem:
        display(Notice(f"This cell is not saved. {problem}"))
        return
    loaded = parts.find(options.name)
    if options.no_check:
        display({"text/plain": f"{words} It is not checked."}, raw=True)
        # who has written a source checks it soon
        parts.get_ready(loaded)
        return
    display({"text/plain": words}, raw=True)
    display(parts.check_kept(loaded, file))


def _keep(parts: Any, name: str, cell: str) -> tuple[Any, str]:
    """Write the file; give it, and what is said of that."""
    from warpbook.kernel.labs import lab_sources as sources

    file, aside = sources.keep_source(parts.find(name), cell)
    lines = len(cell.splitlines())
    words = f"Saved in {file}: {lines:,} line{'' if lines == 1 else 's'}."
    if aside:
        words += f" What was there before is in {aside}."
    return file, words
