"""Splits a source into tokens, whatever its language: C-like, or Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/|\#(?!\s*(?:include|define|if|endif|else|pragma)\b)[^\n]*)
    |(?P<text>"{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<number>(?:0[xX][0-9a-fA-F]+|\d[\d.]*(?:[eE][+-]?\d+)?)\w*)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign><<<|>>>|[-+*/%&|^<>=!]=|\+\+|--|&&|\|\||<<|>>|->|\*\*|//|\S)
    """,
    re.VERBOSE | re.DOTALL,
)
#: names that tell what a line does; all others are somebody's choice
_KEPT = frozenset(
    """
    if else for while do switch case break continue return goto int float double half
    char bool void unsigned signed long short const static struct template typename
    auto extern def class import from as in is not and or lambda yield with try except
    finally raise pass None True False range len while
    __global__ __device__ __shared__ __syncthreads __syncwarp threadIdx blockIdx
    blockDim gridDim atomicAdd __shfl_down_sync __shfl_xor_sync tl load store arange
    program_id zeros dot sum max exp torch cuda Stream
    """.split()
)


class Token(NamedTuple):
    """A token, and the line that it is in."""

    text: str
    line: int


def structure_tokens(source: str) -> list[Token]:
    """Give tokens in which somebody's names, numbers and comments do not count."""
    return [
        Token(_plain(kind, token.text), token.line)
        for kind, token in _tokens(source)
        if kind != "comment"
    ]


def wording_tokens(source: str) -> list[Token]:
    """Give tokens as they are written, words of comments among them."""
    tokens: list[Token] = []
    for kind, token in _tokens(source):
        if kind == "comment":
            words = re.findall(r"\w+", token.text)
            tokens += [Token(word, token.line) for word in words]
        else:
            tokens.append(token)
    return tokens


def _tokens(source: str) -> Iterator[tuple[str, Token]]:
    line, place = 1, 0
    for match in _TOKEN.finditer(source):
        line += source.count("\n", place, match.start())
        place = match.start()
        yield str(match.lastgroup), Token(match.group(), line)


def _plain(kind: str, text: str) -> str:
    if kind == "name" and text not in _KEPT:
        return "v"
    return {"number": "1", "text": "s"}.get(kind, text)
