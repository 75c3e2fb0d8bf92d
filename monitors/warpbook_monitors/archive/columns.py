"""Columns of numbers in few bytes, without loss.

What NVML and GPM tell has few decimals, so a column is kept as whole numbers with a
power of ten: the numbers, or their differences where those are smaller, in as few
bytes each as the largest needs, the first bytes of all together, then the second ones;
zlib finds what repeats.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: rows of one table; a day of minutes has 1,440, five minutes of frames 3,000
MAX_ROWS = 100_000
_MOST_DECIMALS = 9
#: whole numbers beyond it are not exact
_MOST_WHOLE = 2.0**52
_LEVEL = 6

_EMPTY, _CONSTANT, _WHOLE, _DIFFERENCES, _FLOATS = range(5)


class DamagedColumn(ValueError):
    """Bytes that are no column of so many rows."""


def pack_column(values: Floats) -> bytes:
    """Pack a column; NaN is a row without a value."""
    known = np.isfinite(values)
    if not known.any():
        return bytes([_EMPTY])
    given = values[known]
    mask = b"" if known.all() else np.packbits(known).tobytes()
    if not mask and (given == given[0]).all():
        return struct.pack("<Bd", _CONSTANT, given[0])
    decimals = _decimals(given)
    if decimals is None:
        content = np.ascontiguousarray(given).view(np.uint8).reshape(-1, 8).T.tobytes()
        head = struct.pack("<BBH", _FLOATS, 8, len(mask))
    else:
        whole = np.round(given * 10.0**decimals).astype(np.int64)
        differences = np.diff(whole, prepend=0)
        # the first difference is the number itself
        is_smaller = np.abs(differences[1:]).sum() < np.abs(whole[1:]).sum()
        kind = _DIFFERENCES if is_smaller else _WHOLE
        content, width = _narrow(differences if is_smaller else whole)
        head = struct.pack("<BBHb", kind, width, len(mask), decimals)
    return head + zlib.compress(mask + content, _LEVEL)


def unpack_column(packed: bytes, rows: int) -> Floats:
    """Give the column back.

    Raises:
        DamagedColumn: it is none of so many rows.
    """
    try:
        return _unpacked(packed, rows)
    except (struct.error, zlib.error, ValueError, IndexError) as error:
        raise DamagedColumn(f"A column can't be read: {error}.") from error


def _unpacked(packed: bytes, rows: int) -> Floats:
    if not 0 <= rows <= MAX_ROWS:
        raise DamagedColumn(f"{rows} rows are too many.")
    values = np.full(rows, np.nan)
    kind = packed[0]
    if kind == _EMPTY:
        return values
    if kind == _CONSTANT:
        values[:] = struct.unpack_from("<d", packed, 1)[0]
        return values
    _, width, mask_bytes = struct.unpack_from("<BBH", packed)
    if not 1 <= width <= 8 or kind not in (_WHOLE, _DIFFERENCES, _FLOATS):
        raise DamagedColumn("It is of an unknown kind.")
    at = 4 if kind == _FLOATS else 5
    # never more than the rows can take, whatever the bytes would inflate to
    content = zlib.decompressobj().decompress(packed[at:], mask_bytes + 8 * rows + 1)
    known = _mask(content[:mask_bytes], rows)
    planes = np.frombuffer(content, np.uint8, offset=mask_bytes)
    planes = planes.reshape(width, int(known.sum())).T
    if kind == _FLOATS:
        values[known] = np.ascontiguousarray(planes).view(np.float64)[:, 0]
        return values
    decimals = struct.unpack_from("<b", packed, 4)[0]
    whole = _widened(planes)
    if kind == _DIFFERENCES:
        whole = np.cumsum(whole)
    values[known] = whole / 10.0**decimals
    return values


def _decimals(given: Floats) -> int | None:
    """With how many decimals all are exact; None with none."""
    for decimals in range(_MOST_DECIMALS + 1):
        scaled = np.round(given * 10.0**decimals)
        if np.abs(scaled).max() > _MOST_WHOLE:
            return None
        if (scaled / 10.0**decimals == given).all():
            return decimals
    return None


def _narrow(whole: NDArray[np.int64]) -> tuple[bytes, int]:
    """Signs in the lowest bit, then only those bytes that are used, plane by plane."""
    folded = ((whole << 1) ^ (whole >> 63)).astype(np.uint64)
    width = max((int(folded.max()).bit_length() + 7) // 8, 1)
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    return planes.T.tobytes(), width


def _widened(planes: NDArray[np.uint8]) -> NDArray[np.int64]:
    rows, width = planes.shape
    whole = np.zeros((rows, 8), np.uint8)
    whole[:, :width] = planes
    folded = whole.view("<u8")[:, 0]
    signs = -(folded & np.uint64(1)).astype(np.int64)
    unfolded: NDArray[np.int64] = (folded >> np.uint64(1)).astype(np.int64) ^ signs
    return unfolded


def _mask(packed: bytes, rows: int) -> NDArray[np.bool_]:
    if not packed:
        return np.ones(rows, bool)
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=rows)
    return bits.astype(bool)
