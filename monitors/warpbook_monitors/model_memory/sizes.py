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
#: by the GB that a GPU is sold with: a GPU of them, and its memory in MiB as
#: `nvidia-smi` tells it (memory.total), which is the least of those with that number
SOLD_AS = {
    8: ("RTX 4060", 8_188),
    10: ("RTX 3080", 10_240),
    12: ("RTX 4070", 12_282),
    16: ("T4", 15_360),
    20: ("RTX 4000 Ada", 20_475),
    24: ("L4", 23_034),
    32: ("RTX 5090", 32_607),
    40: ("A100", 40_960),
    48: ("L40S", 46_068),
    80: ("H100", 81_559),
    94: ("H100 NVL", 95_830),
    96: ("GH200", 97_871),
    141: ("H200", 143_771),
    180: ("B200", 183_359),
    192: ("B200", 183_359),
}


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


def read_gpu_size(text: str) -> int:
    """Give the bytes of a GPU's memory: "80GB" is what a GPU sold so has.

    Raises:
        ValueError: as of `read_size`.
    """
    sold = re.fullmatch(r"(\d{1,3}) ?GB", text.strip(), re.IGNORECASE)
    _, mib = SOLD_AS.get(int(sold[1]), ("", 0)) if sold else ("", 0)
    return mib << 20 or read_size(text)
