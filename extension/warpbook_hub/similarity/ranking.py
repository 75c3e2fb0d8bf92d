"""Which submissions of a lab have most in common, for a person to look at.

A ranking, and no verdict: solutions of one short kernel are alike by nature, so no
number is a threshold. What most of the class has in common counts little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct

#: with fewer, what most have in common tells, too
SMALL_CLASS = 8
_MOST_LINES = 400
#: tokens that are hashed together
RUN = 9
#: runs of which one is kept
WINDOW = 5


def fingerprints(tokens: Sequence[Token]) -> dict[int, tuple[int, int]]:
    """Return the first and last line of what each fingerprint was made of.

    Fingerprints are hashes of short runs of tokens. Of a window the least is kept, so
    that what is copied in a run as long as both leaves the same one in both sources
    (winnowing, as MOSS does it), wherever it was put.
    """
    if not tokens:
        return {}
    if len(tokens) < RUN:
        return {_hash(tokens): (tokens[0].line, tokens[-1].line)}
    runs = [tokens[place : place + RUN] for place in range(len(tokens) - RUN + 1)]
    hashes = [_hash(run) for run in runs]
    lines: dict[int, tuple[int, int]] = {}
    for begin in range(max(1, len(hashes) - WINDOW + 1)):
        window = range(begin, min(begin + WINDOW, len(hashes)))
        # of equal ones the last, so that neighbours keep the same one
        place = min(window, key=lambda place: (hashes[place], -place))
        run = runs[place]
        lines.setdefault(hashes[place], (run[0].line, run[-1].line))
    return lines


def _hash(tokens: Sequence[Token]) -> int:
    return crc32("\0".join(token.text for token in tokens).encode(errors="replace"))


class Work(Struct, frozen=True):
    """A source, and whose it is."""

    submission: str
    party: str
    source: str


class Pair(Struct, frozen=True):
    """Two submissions of different parties."""

    first: str
    second: str
    #: in the order of `structure`, 1 is the most alike
    rank: int
    #: what they share, where names and spaces do not count: 0 to 1
    structure: float
    #: in the order of `wording`
    wording_rank: int
    #: the same, where names and comments count
    wording: float
    #: lines of the first, and of the second, that are alike
    first_lines: tuple[int, ...]
    second_lines: tuple[int, ...]


def rank(
    own: Sequence[Work],
    boilerplate: Sequence[str] = (),
    elsewhere: Sequence[Work] = (),
    most: int = 200,
) -> list[Pair]:
    """Rank pairs by what they have in common, the most alike first.

    Args:
        own: of one lab.
        boilerplate: what everybody was given: starter, given files.
        elsewhere: compared with these, and not with one another.
        most: so many pairs are told.
    """
    works = [*own, *elsewhere]
    structure = _Comparison(works, len(own), boilerplate, structure_tokens)
    wording = _Comparison(works, len(own), boilerplate, wording_tokens)
    # of two parties with several submissions the pair that is most alike
    best: dict[tuple[str, str], tuple[float, int, int]] = {}
    for (first, second), score in structure.scores.items():
        parties = (works[first].party, works[second].party)
        key = (min(parties), max(parties))
        if key not in best or score > best[key][0]:
            best[key] = score, first, second
    chosen = sorted(
        best.values(), key=lambda pair: (-pair[0], works[pair[1]].submission)
    )
    by_wording = sorted(
        (wording.scores.get((first, second), 0.0) for _, first, second in chosen),
        reverse=True,
    )
    pairs: list[Pair] = []
    for place, (score, first, second) in enumerate(chosen[:most], 1):
        worded = wording.scores.get((first, second), 0.0)
        first_lines, second_lines = structure.shared_lines(first, second)
        pairs.append(
            Pair(
                works[first].submission,
                works[second].submission,
                place,
                round(score, 4),
                by_wording.index(worded) + 1,
                round(worded, 4),
                first_lines,
                second_lines,
            )
        )
    return pairs


class _Comparison:
    """All pairs of sources, by one way to see them."""

    def __init__(
        self,
        works: Sequence[Work],
        own: int,
        boilerplate: Sequence[str],
        split: Callable[[str], list[Token]],
    ) -> None:
        given: set[int] = set()
        for text in boilerplate:
            given |= fingerprints(split(text)).keys()
        self._prints = [
            {
                value: lines
                for value, lines in fingerprints(split(work.source)).items()
                if value not in given
            }
            for work in works
        ]
        holders: dict[int, list[int]] = {}
        for index, prints in enumerate(self._prints):
            for value in prints:
                holders.setdefault(value, []).append(index)
        parties = len({work.party for work in works})
        #: how much a fingerprint tells: that of few much, that of most nothing
        self._weights: dict[int, float] = {}
        for value, indices in holders.items():
            count = len({works[index].party for index in indices})
            if parties < SMALL_CLASS or 2 * count <= parties:
                self._weights[value] = math.log((parties + 1) / count)
        totals = [
            sum(self._weights.get(value, 0.0) for value in prints)
            for prints in self._prints
        ]
        shared: dict[tuple[int, int], float] = {}
        for value, weight in self._weights.items():
            for first, second in combinations(holders[value], 2):
                is_compared = first < own
                if is_compared and works[first].party != works[second].party:
                    key = (first, second)
                    shared[key] = shared.get(key, 0.0) + weight
        # of the shorter one, so that lines which do nothing hide no copy; a source of
        # few lines is in many others by chance
        least = median(totals) if totals else 0.0
        #: 0 to 1, of pairs that have anything in common
        self.scores = {
            (first, second): weight / max(min(totals[first], totals[second]), least)
            for (first, second), weight in shared.items()
            if weight > 0
        }

    def shared_lines(
        self, first: int, second: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Give the lines of two sources that are alike, and that not most have."""
        ours, theirs = self._prints[first], self._prints[second]
        common = [value for value in ours if value in theirs and value in self._weights]
        return _lines(ours, common), _lines(theirs, common)


def _lines(
    prints: Mapping[int, tuple[int, int]], values: Iterable[int]
) -> tuple[int, ...]:
    lines: set[int] = set()
    for value in values:
        begin, end = prints[value]
        lines.update(range(begin, min(end, begin + _MOST_LINES) + 1))
    return tuple(sorted(lines)[:_MOST_LINES])


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
