"""What timed inputs are drawn from, and which timed calls the CPU looks at."""

from __future__ import annotations

import secrets

import numpy as np

from warpbook_labs.cases.preparation import shape_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Speed

#: elements that are drawn; inputs are put together from pieces of them
_MOST_POOL = 1 << 20


def drawn_of_look(done: int, pairs: int) -> int | None:
    """Draw which pair up to the next look is compared on the CPU; maybe none of them.

    It takes the place of the one drawn before, so that each pair is as likely as any
    other in the end, however many there are (reservoir sampling).
    """
    if secrets.randbelow(pairs) < done:
        return None
    return done + secrets.randbelow(pairs - done)


def pool_sizes(loaded: LoadedLab, speed: Speed) -> dict[str, int]:
    """Make the timed sizes so small that no input has more elements than a pool."""
    sizes = dict(speed.sizes)

    def largest() -> int:
        return max(
            int(np.prod(shape_of(parameter, sizes), dtype=np.int64))
            for parameter in loaded.lab.parameters
            if parameter.shape
        )

    while largest() > _MOST_POOL:
        name = max(sizes, key=lambda size: sizes[size])
        sizes[name] //= 2
    return sizes
