"""Sizes as people write them: "80GB" is of 1000, "80GiB" of 1024."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?([KMGT]i?B)", re.IGNORECASE)
_UNITS = {
    prefix + unit: base ** (power + 1)
    for power, prefix in enumerate("kmgt")
    for unit, base in (("b", 1000), ("ib", 1024))
}
_MOST_BYTES = 10**15


def read_size(text: str) -> int:
    """Give the bytes.

    Raises:
        ValueError: it is no size, or too large; the message says what to write.
    """
    given = _SIZE.fullmatch(text.strip())
    if given is None:
        raise ValueError(f"{text[:40]!r} is no size: write 80GB, 24GiB or 500MB")
    count = int(float(given[1]) * _UNITS[given[2].lower()])
    if count > _MOST_BYTES:
        raise ValueError(f"{text[:40]!r} is more than 1000TB")
    return count
