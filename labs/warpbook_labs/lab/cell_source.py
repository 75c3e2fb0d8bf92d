"""A source that a notebook's cell wrote: its first line stands for the cell's magic.

So line numbers of compiler and checker are those of the cell.
"""

from __future__ import annotations

import re

from warpbook_labs.lab.languages.table import language_of
from warpbook_labs.lab.spec import Lab

_FIRST_LINE = re.compile(r"(?://|#) %%lab [a-z0-9-]{1,64}\n")


def with_cell_line(lab: Lab, cell: str) -> str:
    """Put a comment in the place of the magic, which is no part of a cell's text.

    Args:
        lab: whose source the cell holds.
        cell: its text below the line of the magic.
    """
    return f"{language_of(lab).comment} %%lab {lab.id}\n{cell}"


def without_cell_line(source: str) -> str:
    """Give what the learner wrote; a source that no cell wrote is that already."""
    first = _FIRST_LINE.match(source)
    return source if first is None else source[first.end() :]
