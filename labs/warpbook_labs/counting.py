"""What a source asked of the machine, held against what its lab allows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from warpbook_labs.expressions import value
from warpbook_labs.spec import Counted

_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
#: with its operands from registers, or on Hopper from shared memory
_MATRIX = re.compile(r"^\s+(?:@\S+ )?(?:wgmma\.mma_async|mma\.sync)\.", re.M)
#: what Triton's entries are called: the kernel, then its constants
_AFTER_NAME = "__"


def beyond_bounds(
    counted: Iterable[Counted], counts: Any, sizes: Mapping[str, int]
) -> str:
    """Say of the first count that lies beyond its bounds what to do; nothing if none.

    Args:
        counted: the lab's bounds.
        counts: has an attribute for each count.
        sizes: of the case.
    """
    for each in counted:
        got = getattr(counts, each.count)
        told = f"{each.about} Counted: {got:,} {each.count.replace('_', ' ')}"
        if each.most and got > (most := value(each.most, sizes)):
            return f"{told}, at most {most:,}."
        if each.least and got < (least := value(each.least, sizes)):
            return f"{told}, at least {least:,}."
    return ""


def matrix_instructions(ptx: str, kernels: Iterable[str]) -> int:
    """Count instructions for tensor cores in the programs of these kernels.

    Of a kernel that was compiled for several kinds of numbers, the fewest count.
    """
    parts = _ENTRY.split(ptx)[1:]
    found = {
        entry: len(_MATRIX.findall(body))
        for entry, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return sum(
        min(
            (
                count
                for entry, count in found.items()
                if entry == kernel or entry.startswith(kernel + _AFTER_NAME)
            ),
            default=0,
        )
        for kernel in dict.fromkeys(kernels)
    )
