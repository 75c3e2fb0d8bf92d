"""Counts what a warp's access asks of the memory.

Global memory moves sectors of 32 bytes. Shared memory has 32 banks, each a word of
four bytes wide; accesses of 8 and 16 bytes are made for half and quarter warps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]
Bools = NDArray[np.bool_]

SECTOR_BYTES = 32
_BANKS = 32
_WORD_BYTES = 4
_WARP = 32
#: of a lane that does nothing, also with the words beside it
_NO_WORD = -1000


class GlobalTraffic(NamedTuple):
    """Of all warps of one instruction."""

    requests: int
    sectors: int
    #: that would do if the same bytes lay side by side
    least_sectors: int


class SharedTraffic(NamedTuple):
    """Of all warps of one instruction."""

    requests: int
    #: passes beyond those that the size of the access needs
    conflicts: int


def global_traffic(at: Offsets, active: Bools, width: int) -> GlobalTraffic:
    """Count the sectors of an access.

    Args:
        at: of each lane, where it reads or writes.
        active: the lanes that do.
        width: bytes of each.
    """
    requests = _warps(active)
    distinct = _distinct(at // SECTOR_BYTES, active)
    places = _distinct(at, active)
    least = -(-places * width // SECTOR_BYTES)
    return GlobalTraffic(requests, int(distinct.sum()), int(least.sum()))


def _warps(active: Bools) -> int:
    return int(active.reshape(-1, _WARP).any(axis=1).sum())


def _distinct(numbers: Offsets, active: Bools) -> NDArray[np.int64]:
    """Count the different numbers of each warp's active lanes."""
    rows = np.where(active, numbers, -1).reshape(-1, _WARP)
    rows.sort(axis=1)
    changes = (rows[:, 1:] != rows[:, :-1]).sum(axis=1) + 1
    counts: NDArray[np.int64] = changes - (rows[:, 0] == -1)
    return counts


def shared_traffic(at: Offsets, active: Bools, width: int) -> SharedTraffic:
    """Count the passes of an access beyond one for each group of lanes."""
    words = max(width // _WORD_BYTES, 1)
    lanes = _WARP // words
    word = np.where(active, at // _WORD_BYTES, _NO_WORD)
    rows = (word[:, None] + np.arange(words)).reshape(-1, lanes * words)
    rows.sort(axis=1)
    # each word once for each group: lanes that want the same are served together
    is_new = rows >= 0
    is_new[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    bank = rows % _BANKS + np.arange(len(rows))[:, None] * _BANKS
    passes = np.bincount(bank[is_new], minlength=len(rows) * _BANKS)
    most = passes.reshape(-1, _BANKS).max(axis=1)
    return SharedTraffic(_warps(active), int(np.maximum(most - 1, 0).sum()))
