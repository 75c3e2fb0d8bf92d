"""What a source has for the host, which NVRTC refuses and no kernel needs.

A file that people compile with nvcc may have a function that launches its kernels, a
`main`, `constexpr` functions without `__device__`, and lambdas with one. The first are
left out, and the marks are put right, with all lines where they were.
"""

from __future__ import annotations

import re

_HOST_FUNCTION = re.compile(
    r"^kernel\.cu\((\d+)\): error: (?:A function without execution space|A function "
    r"explicitly marked as a __host__).*\n.*\n( *)\^",
    re.M,
)
_ON_LAMBDA = "annotation on lambda is not allowed"
_LAMBDA = re.compile(r"(?<=\])(\s*)((?:__(?:host|device)__\s*)+)(?=[({])")
#: comments and texts, where a brace is none
_PIECE = re.compile(
    r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{};]"
    r"|^[ \t]*#[^\n]*",
    re.M,
)
#: how far the compiler's picture of a line stands to the right
_INDENT = 2


def without_host_parts(source: str, log: str) -> str:
    """Return the source without what the log calls the host's.

    Where nothing can be left out it is as it was.
    """
    if _ON_LAMBDA in log:
        source = _LAMBDA.sub(lambda mark: mark[1] + _blank(mark[2]), source)
    lines = [0, *(newline.end() for newline in re.finditer("\n", source))]
    pieces = list(_PIECE.finditer(source))
    edits: list[tuple[int, int, str]] = []
    for number, indent in _HOST_FUNCTION.findall(log):
        name = lines[int(number) - 1] + len(indent) - _INDENT
        begin, end = _span(name, pieces)
        constant = re.search(r"\bconstexpr\b", source[begin:name])
        if constant is not None:
            at = begin + constant.start()
            edits.append((at, at, "__host__ __device__ "))
        elif end:
            edits.append((begin, end, _blank(source[begin:end])))
    for begin, end, text in sorted(edits, reverse=True):
        source = source[:begin] + text + source[end:]
    return source


def _span(name: int, pieces: list[re.Match[str]]) -> tuple[int, int]:
    """Give where a function begins and ends; the end is 0 where it can't be found."""
    begin, depth = 0, 0
    for piece in pieces:
        sign = piece[0]
        if piece.end() <= name:
            begin = begin if sign[0] in "\"'" else piece.end()
        elif sign == ";" and not depth:
            return begin, piece.end()
        elif sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return begin, piece.end()
    return begin, 0


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
