"""Elements of inputs that a child gets only when its clock runs.

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

from warpbook_labs.referee.messages import Slot

#: of all inputs in one place, and of each buffer of them
_ALL, _LEAST = 1024, 8


class Late(NamedTuple):
    """Bytes that come late, by their offsets in the memory of a place."""

    #: (bytes,): where
    places: NDArray[np.int64]
    #: (bytes,): whose values lie there until then, those of other elements
    others: NDArray[np.int64]

    @classmethod
    def drawn(cls, inputs: Sequence[Slot]) -> Late:
        """Draw some elements of each input."""
        chance = np.random.default_rng(secrets.randbits(64))
        found = [np.empty((2, 0), np.int64)]
        for slot in inputs:
            item = np.dtype(slot.dtype).itemsize
            of = slot.size_bytes // item
            if of:
                count = min(of, max(_LEAST, _ALL // len(inputs)))
                begins = slot.offset + item * chance.integers(0, of, (2, count))
                whole = begins[:, :, np.newaxis] + np.arange(item)
                found.append(whole.reshape(2, -1))
        places, others = np.concatenate(found, axis=1)
        return cls(places, others)
