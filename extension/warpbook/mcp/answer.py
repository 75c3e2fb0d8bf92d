"""Answers of tools: what is always said, and rows that fit, a page at a time.

No tokenizer is here, and each model has its own. A token of text like ours is three
bytes of UTF-8 or more; two are counted, so that mangled names of kernels fit, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpbook.mcp.marked import NOTE, Own, plain

BYTES_PER_TOKEN = 2
DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS = 3000, 500, 20_000
#: characters of one text, less where an answer has no room for it
_MOST_TEXT = (2000, 600, 200, 80, 30)


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
    for most in _MOST_TEXT:
        page = _page(answer, start, room, most)
        if page is not None:
            return page
    return _page(answer, start, room, 8, must=True) or {}


def encoded(document: object) -> str:
    """Write JSON without spaces, as it is counted and sent."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _page(
    answer: Answer, start: int, room: int, most: int, must: bool = False
) -> dict[str, object] | None:
    """Give a page with texts of so many characters; None where it would be empty."""
    rows = [plain(row, most) for row in answer.rows[start : start + room // 8]]
    head = _object(plain(answer.head, most))
    if answer.unknown:
        head["unknown"] = plain(list(answer.unknown), most)
    if answer.see:
        head["see"] = plain(dict(answer.see), most)
    head["note"] = str(Own(NOTE))
    if answer.rows:
        head["rows"] = []
        head["rows_in_all"] = len(answer.rows)
    # with the cursor, should there be one
    left = room - _size({**head, "cursor": "0" * 7})
    fitting = 0
    for row in rows:
        left -= _size(row) + 1
        if left < 0:
            break
        fitting += 1
    if left < 0 and not fitting and not must:
        return None
    if answer.rows:
        head["rows"] = rows[:fitting]
        following = start + fitting
        if following < len(answer.rows):
            head["cursor"] = str(following)
    return head


def _object(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value


def _size(document: object) -> int:
    return len(encoded(document).encode(errors="replace"))
