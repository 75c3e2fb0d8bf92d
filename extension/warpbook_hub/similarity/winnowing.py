"""Fingerprints of a source: hashes of short runs of tokens, few of many.

Of each window the least hash is kept, so that whatever is copied in a run as long as
window and run together leaves the same fingerprint in both sources (winnowing, as MOSS
does it), wherever it was put.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from warpbook_hub.similarity.tokens import Token

#: tokens that are hashed together
RUN = 9
#: runs of which one is kept
WINDOW = 5


def fingerprints(tokens: Sequence[Token]) -> dict[int, tuple[int, int]]:
    """Give the first and last line of what each fingerprint was made of."""
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
