"""Hostile inputs, the same for the same seed: texts, numbers, JSON, broken bytes."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

TEXTS = (
    "",
    "\x00",
    "\x1b]0;x\x07",
    "<img src=x onerror=alert(1)>",
    "{{7*7}}",
    "%s%n",
    "../../../../etc/passwd",
    "=cmd|' /C calc'!A0",
    "'; DROP TABLE record; --",
    "%",
    "_",
    "\u202e\ud7ff",
    "x" * 5000,
)
NUMBERS = (
    "0",
    "-1",
    "1",
    "1e308",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "9" * 400,
    "4.1e12",
    "1.7e12",
    "0x10",
    "²",
    "1_000",
    "2147483648",
    "9007199254740993",
)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    2**64,
    -(2**70),
    1e308,
    [],
    {},
    [[]] * 50,
    *TEXTS,
)


class Hostile:
    """Draws inputs by chance."""

    def __init__(self, seed: int) -> None:
        """Begin with a seed."""
        self.dice = random.Random(seed)

    def text(self) -> str:
        return self.dice.choice(TEXTS + NUMBERS)

    def query(self, names: tuple[str, ...], good: Mapping[str, str]) -> list[tuple]:
        """Parameters of a route: good ones, of which some are spoilt."""
        pairs = [(name, good.get(name, self.text())) for name in names]
        for _ in range(self.dice.randrange(3)):
            name = self.dice.choice([*names, "token_", "x"])
            pairs.append((name, self.text()))
        if pairs and self.dice.random() < 0.7:
            at = self.dice.randrange(len(pairs))
            pairs[at] = (pairs[at][0], self.text())
        return [(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs]

    def body(self, good: Any) -> bytes:
        """A body like a good one, with values or bytes that are not."""
        kind = self.dice.randrange(6)
        if kind == 0:
            return b"[" * self.dice.choice((10, 5000, 200_000))
        if kind == 1:
            return self.bytes_of(json.dumps(good).encode())
        if kind == 2:
            return self.dice.randbytes(self.dice.randrange(300))
        spoilt = json.loads(json.dumps(good))
        for _ in range(self.dice.randrange(1, 4)):
            self._spoil(spoilt)
        return json.dumps(spoilt).encode()

    def bytes_of(self, good: bytes, most: int = 7) -> bytes:
        """Bytes with some changed, cut out or doubled, at so many places at most."""
        content = bytearray(good)
        for _ in range(self.dice.randrange(1, most + 1)):
            if not content:
                break
            at = self.dice.randrange(len(content))
            length = self.dice.choice((1, 1, 2, 50))
            action = self.dice.randrange(4)
            if action == 0:
                content[at] = self.dice.randrange(256)
            elif action == 1:
                del content[at : at + length]
            elif action == 2:
                content[at:at] = content[at : at + length]
            else:
                del content[at:]
        return bytes(content)

    def _spoil(self, node: Any) -> None:
        """Change one value somewhere in it."""
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                return
            key = self.dice.choice(keys)
            if isinstance(node[key], dict | list) and self.dice.random() < 0.8:
                node = node[key]
                continue
            if isinstance(node, dict) and self.dice.random() < 0.2:
                del node[key]
            else:
                node[key] = copy.deepcopy(self.dice.choice(VALUES))
            return


def rounds(seed: int, count: int) -> Iterator[Hostile]:
    """One source of inputs for each of so many, each its own seed."""
    for number in range(count):
        yield Hostile(seed * 1_000_003 + number)
