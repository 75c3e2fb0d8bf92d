"""Elements of inputs in the host's memory that a child gets only when its clock runs.

A stream can wait for memory to change, and so begin when inputs are copied there,
before the child is told to. What it reads then is wrong at places that nobody knows,
others in each unit; to find them takes reading everything again.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.host.messages import Slot

#: of all inputs in one place by about, and of each buffer of them
_ALL, _LEAST = 256, 8


class Late(NamedTuple):
    """Bytes that come late, by their offsets in the memory of a place."""

    #: (bytes,): where, each once
    places: NDArray[np.int64]
    #: (bytes,): whose values lie there until then, those of other elements
    others: NDArray[np.int64]

    @classmethod
    def drawn(cls, inputs: Sequence[Slot]) -> Late:
        """Draw some elements of each input."""
        chance = np.random.default_rng(secrets.randbits(64))
        pieces = [np.empty((2, 0), np.int64)]
        for slot in inputs:
            item = np.dtype(slot.dtype).itemsize
            of = slot.size_bytes // item
            count = min(of, max(_LEAST, _ALL // len(inputs)))
            late = chance.choice(of, count, replace=False, shuffle=False)
            drawn = np.stack([late, chance.integers(0, max(of, 1), count)])
            whole = slot.offset + item * drawn[:, :, np.newaxis] + np.arange(item)
            pieces.append(whole.reshape(2, -1))
        places, others = np.concatenate(pieces, axis=1)
        return cls(places, others)
