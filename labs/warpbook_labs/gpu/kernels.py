"""The trusted process's own kernels, and the same arithmetic on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: elements that are taken from one place of a pool
CHUNK = 1024

#: compiled once for a kind of GPU
SOURCE = Path(__file__).with_name("trusted.cu")

Words = NDArray[np.uint32]


def mix(x: Words) -> Words:
    """Mix the bits of numbers, as the kernel of this name does."""
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ (x >> np.uint32(13))
    x = x * np.uint32(0xC2B2AE35)
    mixed: Words = x ^ (x >> np.uint32(16))
    return mixed


def poison(size_bytes: int, key: int, begin: int = 0) -> NDArray[np.uint8]:
    """Give what memory holds, from a byte of an arena on, before a kernel runs.

    Halves of a word are no NaN that arithmetic gives in 16 bits (0x7FFF, 0x7E00), which
    would be taken for what nobody has written. Bytes can't be kept from it: one in four
    is 0x7F, the NaN of float8_e4m3fn. So no element of 8 bits, FP8 or not, is taken for
    poison by itself: one that was not written is told as a wrong number.
    """
    first, last = begin // 4, -(-(begin + size_bytes) // 4)
    words = np.arange(first, last, dtype=np.uint64)
    high = mix((words >> np.uint64(32)).astype(np.uint32) ^ np.uint32(key))
    mixed = mix(words.astype(np.uint32) ^ high)
    upper = np.uint32(0x7FF0) | (mixed & np.uint32(0xFFFF)) % np.uint32(15)
    lower = np.uint32(0x7C00) | (
        (mixed >> np.uint32(16)) % np.uint32(511) + np.uint32(1)
    )
    words = (upper << np.uint32(16) | lower).astype("<u4")
    held: NDArray[np.uint8] = words.view(np.uint8)[begin - 4 * first :]
    return held[:size_bytes]


def chunk_of(pool: int) -> tuple[int, int]:
    """Give the length of a chunk of a pool, and at how many places one can begin."""
    chunk = max(1, min(CHUNK, pool // 2))
    return chunk, pool - chunk + 1


def filled(
    pool: NDArray[Any], count: int, key: int, first_chunk: int = 0
) -> NDArray[Any]:
    """Take elements from a pool, from a chunk on, as the kernel `fill` does."""
    chunk, places = chunk_of(len(pool))
    last_chunk = first_chunk - (-count // chunk)
    numbers = np.arange(first_chunk, last_chunk, dtype=np.uint32) + np.uint32(key)
    begins = mix(numbers) % np.uint32(places)
    windows = np.lib.stride_tricks.sliding_window_view(pool, chunk)
    values: NDArray[Any] = windows[begins].reshape(-1)
    return values[:count]
