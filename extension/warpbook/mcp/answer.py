"""Answers of tools: what is always said, and rows that fit, a page at a time.

No tokenizer is here, and each model has its own. A token of text like ours is three
bytes of UTF-8 or more; two are counted, so that mangled names of kernels fit, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpbook.mcp.marked import NOTE, plain

BYTES_PER_TOKEN = 2
DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 3000, 1000, 20_000
#: characters of one text and items of one list, less where an answer has no room
_MOST = ((2000, 1000), (600, 300), (200, 100), (80, 40), (30, 15), (8, 10), (8, 4))


@dataclass(frozen=True)
class Answer:
    """What a tool answers; plain texts in it are marked on the way out."""

    head: Mapping[str, object]
    #: given a page at a time
    rows: Sequence[object] = ()
    #: what is not known, and why
    unknown: Sequence[str] = ()
    #: how a person finds the same in the page
    see: Mapping[str, object] = field(default_factory=dict)


def fitted(answer: Answer, start: int, tokens: int) -> dict[str, object]:
    """Give as much of an answer as fits, and how to ask for the rest.

    Args:
        answer: all of it.
        start: of the rows, the first that is wanted.
        tokens: at most, counted by `BYTES_PER_TOKEN`.
    """
    room = tokens * BYTES_PER_TOKEN
    for most, items in _MOST:
        page, is_fitting = _page(answer, start, room, most, items)
        if is_fitting:
            break
    return page


def encoded(document: object) -> str:
    """Write JSON without spaces, as it is counted and sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _page(
    answer: Answer, start: int, room: int, most: int, items: int
) -> tuple[dict[str, object], bool]:
    """Give a page with texts and lists so long, and whether it has room for it.

    It has a row at least, if there is one, so that who asks on comes to an end.
    """
    page: dict[str, object] = {
        name: plain(value, most, items) for name, value in answer.head.items()
    }
    if answer.unknown:
        page["unknown"] = plain(list(answer.unknown), most, items)
    if answer.see:
        page["see"] = plain(dict(answer.see), most, items)
    page["note"] = NOTE
    if not answer.rows:
        return page, _size(page) <= room
    page |= {"rows": [], "rows_in_all": len(answer.rows)}
    # with the cursor, should there be one
    left = room - _size({**page, "cursor": "0" * 7})
    is_fitting = left >= 0
    rows: list[object] = []
    # one after another: of many, most would be marked for nothing
    for row in answer.rows[start:]:
        shown = plain(row, most, items)
        left -= _size(shown) + 1
        if rows and left < 0:
            break
        is_fitting = left >= 0
        rows.append(shown)
    page["rows"] = rows
    if start + len(rows) < len(answer.rows):
        page["cursor"] = str(start + len(rows))
    return page, is_fitting


def _size(document: object) -> int:
    return len(encoded(document).encode(errors="replace"))
