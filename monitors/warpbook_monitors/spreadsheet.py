"""CSV for people, whose programs are spreadsheets: the one writer of all exports."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal

#: by which Excel takes a file for UTF-8; `utf-8-sig` reads it with or without
MARK = "\ufeff"
#: what spreadsheets begin a formula with, also behind spaces, and as wide characters
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Write rows; `MARK` comes before the first of a file."""
    writer = csv.writer(_Lines())
    for row in rows:
        # the writer gives what its file gives
        yield writer.writerow(map(cell, row))


def cell(value: object) -> str:
    """Write a value; of a text that could be a formula, with a quote before it.

    Numbers have no exponent: floats have six decimals at most, decimals all that they
    have. What is not finite is empty.
    """
    if value is None:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            return ""
        return f"{round(value, 6) + 0.0:.6f}".rstrip("0").rstrip(".")
    if isinstance(value, (int, Decimal)):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    text = str(value)
    is_formula = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return f"'{text}" if is_formula else text


class _Lines:
    def write(self, text: str) -> str:
        """Give the line in place of keeping it."""
        return text
