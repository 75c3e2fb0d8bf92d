"""Lines of a CUDA source of which the compiler leaves nothing, that may be at fault.

Of a loop that is unrolled its head is gone, and of a sum its first value may have no
line any more. What runs is only followed by what the compiler leaves. So these lines
are found in the text, beside the lines that compute something with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LINE = re.compile(r"^\s*\.loc\s+\d+ (\d+)|inlined_at \d+ (\d+)", re.M)
#: comments, strings and characters, which are blanked
_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S
)
_LOOP = re.compile(r"\b(?:for|while)\s*(?=\()")
_HEAD = re.compile(r"\s*(?:#[^\n]*\n\s*)*\b(?:for|while|if)\s*(?=\()")
_ELSE = re.compile(r"\s*\belse\b")
#: `sum += ...`, `sum[i] += ...`
_ADDED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:[-+*|&^]|<<|>>)=(?!=)")
#: lines that others are looked for beside, and first values that are given
_MOST_ASKED, _MOST_VALUES = 3, 2


class OmittedLines(NamedTuple):
    """Lines that are not in a program."""

    #: that give a sum its first value, with which the next round of a loop goes on
    values: tuple[int, ...] = ()
    #: the heads of loops that were unrolled, the outermost first
    heads: tuple[int, ...] = ()


def left_out(source: str, ptx: str, writer: int, lines: Sequence[int]) -> OmittedLines:
    """Give lines that are not in a program, and decide on what is computed beside them.

    Args:
        source: in CUDA C++.
        ptx: what the compiler made of it, with lines.
        writer: the line that wrote what is wrong.
        lines: that compute what is wrong, the nearest first.
    """
    seen = {int(one or other) for one, other in _LINE.findall(ptx)}
    text = _NO_CODE.sub(_blank, source)
    loops = list(_loops(text))
    values: dict[int, None] = {}
    heads: dict[int, None] = {}
    for line in lines[:_MOST_ASKED]:
        first, last = min(line, writer), max(line, writer)
        together = [head for head, end in loops if head <= first and last <= end]
        for value in _first_values(text, line):
            # else each round of the loops that write begins with it
            if any(value < head for head in together):
                values[value] = None
        heads |= dict.fromkeys(head for head, end in loops if head <= line <= end)
    known = seen | set(lines)
    return OmittedLines(
        tuple(line for line in values if line not in known)[:_MOST_VALUES],
        tuple(line for line in heads if line not in known),
    )


def moved_from(source: str, line: int, name: str) -> tuple[int, ...]:
    """Give the lines of an access that the compiler has moved to a loop's head.

    Args:
        source: in CUDA C++.
    """
    text = _NO_CODE.sub(_blank, source)
    lines = text.split("\n")
    named = re.compile(rf"\b{re.escape(name)}\b")
    used = re.compile(rf"\b{re.escape(name)}\s*(?:\[|->)|\*\s*{re.escape(name)}\b")
    if not 0 < line <= len(lines) or named.search(lines[line - 1]):
        return ()
    ends = [end for head, end in _loops(text) if head == line]
    within = range(line + 1, max(ends, default=line) + 1)
    return tuple(number for number in within if used.search(lines[number - 1]))


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _loops(text: str) -> Iterator[tuple[int, int]]:
    """Give the line of each loop's head, and its last line."""
    for match in _LOOP.finditer(text):
        last = _end_of_statement(text, match.start())
        yield _line_at(text, match.start()), _line_at(text, last)


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _end_of_statement(text: str, place: int) -> int:
    """Give the place of the last character of the statement that begins somewhere."""
    head = _HEAD.match(text, place)
    if head:
        end = _end_of_statement(text, _closing(text, head.end()) + 1)
        other = _ELSE.match(text, end + 1)
        return _end_of_statement(text, other.end()) if other else end
    begin = re.compile(r"\s*(?:#[^\n]*\n\s*)*").match(text, place)
    place = begin.end() if begin else place
    if text[place : place + 1] == "{":
        return _closing(text, place)
    end = text.find(";", place)
    return end if end >= 0 else len(text) - 1


def _closing(text: str, place: int) -> int:
    """Give the place of the bracket that closes the one here, or the last one."""
    depth = 0
    for at in range(place, len(text)):
        depth += (text[at] in "({[") - (text[at] in ")}]")
        if not depth:
            return at
    return len(text) - 1


def _first_values(text: str, line: int) -> Iterator[int]:
    """Give the lines where what a line adds to gets its first value."""
    lines = text.split("\n")
    for name in dict.fromkeys(_ADDED.findall(lines[line - 1])):
        declared = re.compile(rf"\b[A-Za-z_][\w:<>]*[\s*&]+(?:\w+[^;()]*,\s*)?{name}\b")
        for number in range(line, 0, -1):
            given = re.search(
                rf"\b{name}\s*(?:\[[^\]]*\]\s*)*=(?!=)", lines[number - 1]
            )
            if number != line and given or declared.search(lines[number - 1]):
                yield number
                break
