"""The cubins that this process has loaded, found by CUPTI's number of each.

The driver has no call that gives a loaded module's cubin, but keeps each in the
process's memory, and so do Triton's kernels. Whoever loaded it, it begins as an ELF
file; only one with a wanted number is taken.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Set
from pathlib import Path

from warpbook_profiler.stalls.cupti import Cupti, NotSampled, cupti

_MAGIC = b"\x7fELF\x02\x01\x01"
_MACHINE_CUDA = 190
#: bytes: a longer cubin is not taken; so much is read at a time, and at most
_MOST_CUBIN, _PIECE, _MOST_READ = 64 << 20, 16 << 20, 3 << 30
_HEADER = 64


def loaded_cubins(wanted: Set[int], library: Cupti | None = None) -> dict[int, bytes]:
    """Return cubins by number; those that are not found are left out.

    Args:
        wanted: CUPTI's numbers of them.
        library: CUPTI; if left out, the one that is here.
    """
    library, found = library or cupti(), dict[int, bytes]()
    if not wanted:
        return found
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return found
    try:
        for cubin in _cubins(memory):
            try:
                number = library.crc(cubin)
            except NotSampled:
                # it only looks like one
                continue
            if number in wanted:
                found[number] = cubin
                if found.keys() >= wanted:
                    break
    finally:
        os.close(memory)
    return found


def _cubins(memory: int) -> Iterator[bytes]:
    left = _MOST_READ
    for start, end in _private_memory():
        at = start
        while at < end and left > 0:
            piece = _read(memory, at, min(_PIECE + _HEADER, end - at))
            left -= len(piece)
            place = piece.find(_MAGIC)
            while 0 <= place < _PIECE:
                header = piece[place : place + _HEADER]
                length = _length(header)
                if length:
                    cubin = _read(memory, at + place, min(length, max(left, 0)))
                    left -= len(cubin)
                    if len(cubin) == length:
                        yield cubin
                place = piece.find(_MAGIC, place + 1)
            at += _PIECE


def _private_memory() -> list[tuple[int, int]]:
    """Return what can be read and written and is of no file: the heap, then by size."""
    spans: list[tuple[bool, int, int, int]] = []
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        span, rights, _, _, inode, *name = line.split(maxsplit=5)
        if rights.startswith("rw") and inode == "0":
            start, end = (int(place, 16) for place in span.split("-"))
            spans.append((name != ["[heap]"], end - start, start, end))
    return [(start, end) for _, _, start, end in sorted(spans)]


def _length(header: bytes) -> int:
    """Return the bytes of a cubin from its header; 0 of anything else."""
    if (
        len(header) < _HEADER
        or struct.unpack_from("<H", header, 18)[0] != _MACHINE_CUDA
    ):
        return 0
    segments, sections = struct.unpack_from("<QQ", header, 32)
    sizes = struct.unpack_from("<HHHH", header, 54)
    end = max(segments + sizes[0] * sizes[1], sections + sizes[2] * sizes[3])
    return end if _HEADER < end <= _MOST_CUBIN else 0


def _read(memory: int, at: int, length: int) -> bytes:
    try:
        return os.pread(memory, length, at)
    except (OSError, OverflowError):
        return b""
