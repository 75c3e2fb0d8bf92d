"""A learner's source, as a file holds it: bounded, and text.

A source that a notebook's cell wrote: its first line stands for the cell's magic.

So line numbers of compiler and checker are those of the cell.
"""

from __future__ import annotations

import re
from pathlib import Path

from warpbook_labs.errors import BadSource
from warpbook_labs.lab.languages.table import COMMENT, language_of
from warpbook_labs.lab.spec import Lab
from warpbook_monitors.plain_file import check_plain

_FIRST_LINE = re.compile(rf"{COMMENT} %%lab [a-z0-9-]{{1,64}}\n")


def with_cell_line(lab: Lab, cell: str) -> str:
    """Put a comment in the place of the magic, which is no part of a cell's text.

    Args:
        cell: its text below the line of the magic.
    """
    return f"{language_of(lab).comment} %%lab {lab.id}\n{cell}"


def without_cell_line(source: str) -> str:
    """Give what the learner wrote; a source that no cell wrote is that already."""
    first = _FIRST_LINE.match(source)
    return source if first is None else source[first.end() :]


#: more than any exercise needs
MOST_BYTES = 200_000


def read_source(file: Path) -> str:
    """Read a learner's file, in UTF-8 or Latin-1, with any ends of lines.

    Raises:
        BadSource: it can't be read, or is no text of a sensible size.
    """
    try:
        check_plain(file)
        with file.open("rb") as opened:
            held = opened.read(MOST_BYTES + 1)
        if len(held) > MOST_BYTES:
            raise BadSource(f"{file}: it has more than {MOST_BYTES:,} bytes.")
    except OSError as problem:
        raise BadSource(f"{file}: {problem.strerror}.") from None
    try:
        # editors on Windows write a mark at the start
        source = held.decode("utf-8-sig")
    except UnicodeDecodeError:
        # as older editors save it
        source = held.decode("latin-1")
    source = re.sub("\r\n?", "\n", source)
    try:
        refuse_unfit(source)
    except BadSource as problem:
        raise BadSource(f"{file}: {problem}") from None
    return source


def refuse_unfit(source: str) -> None:
    """Refuse what no compiler should be given.

    Raises:
        BadSource: it is too large, empty, or has characters that no text has.
    """
    try:
        size_bytes = len(source.encode())
    except UnicodeEncodeError:
        raise BadSource("The source has characters that UTF-8 can't write.") from None
    if size_bytes > MOST_BYTES:
        raise BadSource(
            f"The source has {size_bytes:,} bytes; {MOST_BYTES:,} are allowed."
        )
    if "\0" in source:
        raise BadSource("The source has a NUL character in it.")
    if not source.strip():
        raise BadSource("The source is empty.")
