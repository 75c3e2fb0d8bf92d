"""Plain data as words of a bounded length: long lists by their head and length."""

from __future__ import annotations

from collections.abc import Sequence
from pprint import pformat
from textwrap import indent
from typing import Any

#: of each list: all that fit to be shown, then fewer until all fits
_WHOLE = 1_000
_ITEMS = (16, 8, 4, 3, 2, 1, 0)
#: of a text, for each item that a list may have, and one more
_CHARACTERS_PER_ITEM = 20
_WIDTH = 84
#: of lists in lists, which a learner may return without end
_MOST_DEPTH = 20


def data_words(values: Sequence[Any], most: int) -> tuple[str, bool]:
    """Write values with commas between them; no number is cut.

    Args:
        values: plain data.
        most: characters, as far as leaving out items can do it.

    Returns:
        The words, and whether all of the data is in them.
    """
    words, items = "", _WHOLE
    for items in (_WHOLE, *_ITEMS):
        words = ", ".join(_written(value, items) for value in values)
        if len(words) <= most:
            break
    return words, items == _WHOLE


def argument_code(name: str, value: Any) -> str:
    """Write plain data as an argument of a call, on lines of its own."""
    text = pformat(value, width=_WIDTH, compact=True, sort_dicts=False)
    return indent(f"# {name}\n{text},", " " * 4)


def _written(value: Any, items: int, depth: int = 0) -> str:
    if depth > _MOST_DEPTH:
        return "..."
    if isinstance(value, dict):
        pairs = [
            f"{key!r}: {_written(inner, items, depth + 1)}"
            for key, inner in list(value.items())[:items]
        ]
        return f"{{{_with_rest(pairs, len(value))}}}"
    if isinstance(value, list | tuple):
        head = [_written(inner, items, depth + 1) for inner in value[:items]]
        return f"[{_with_rest(head, len(value))}]"
    if isinstance(value, str | bytes):
        most = _CHARACTERS_PER_ITEM * (items + 1)
        return f"{value[:most]!r}{'...' if len(value) > most else ''}"
    return repr(value)


def _with_rest(head: list[str], count: int) -> str:
    if len(head) == count:
        return ", ".join(head)
    return ", ".join([*head, f"... {count:,} in all"])
