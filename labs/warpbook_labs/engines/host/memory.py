"""Memory that processes share: the host's as an open file, the GPU's by a handle."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import math
import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases.preparation import is_buffer, shape_of
from warpbook_labs.engines.host.messages import Slot
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.lab.spec import Parameter

PLACES: tuple[HostPlace, ...] = ("device", "pinned", "host")
#: pages, so that no two buffers share one
ALIGNMENT = 4096


class Layout(NamedTuple):
    """Some sets of buffers, and how much memory they take of each place."""

    slots: tuple[Slot, ...]
    size_bytes: dict[HostPlace, int]

    @property
    def read(self) -> tuple[Slot, ...]:
        """Give the buffers that hold something before a call."""
        return tuple(slot for slot in self.slots if slot.is_read)

    @property
    def written(self) -> tuple[Slot, ...]:
        """Give the buffers that are judged after it."""
        return tuple(slot for slot in self.slots if slot.is_written)


def laid_out(
    parameters: Sequence[Parameter], sizes: Mapping[str, int], sets: int = 1
) -> Layout:
    """Lay out as many sets of buffers: what is written of all sets, then the rest."""
    buffers = [parameter for parameter in parameters if is_buffer(parameter)]
    slots: list[Slot] = []
    size_bytes = dict.fromkeys(PLACES, 0)
    of_all_sets = [(number, buffer) for number in range(sets) for buffer in buffers]
    # the order of the sort is kept among equals
    for number, parameter in sorted(
        of_all_sets, key=lambda pair: pair[1].kind == "input"
    ):
        shape = shape_of(parameter, sizes)
        taken = math.prod(shape) * np.dtype(parameter.dtype).itemsize
        offset = size_bytes[parameter.place]
        slots.append(
            Slot(
                parameter.name,
                number,
                parameter.dtype,
                shape,
                parameter.place,
                offset,
                taken,
                is_read=parameter.kind != "output",
                is_written=parameter.kind != "input",
            )
        )
        end = offset + max(taken, 1)
        size_bytes[parameter.place] = -(-end // ALIGNMENT) * ALIGNMENT
    return Layout(tuple(slots), size_bytes)


def largest(*layouts: Layout) -> dict[HostPlace, int]:
    """Say how much memory of each place is enough for each of these."""
    return {
        place: max(layout.size_bytes[place] for layout in layouts) for place in PLACES
    }


_PAGE = mmap.PAGESIZE
#: of linux/fcntl.h: nobody who can write it may make it longer or shorter
_SEALS = 0x1 | 0x2 | 0x4
_LAZY_PEER_ACCESS = 1


class Mapped:
    """Memory of the host, behind an open file that has no name."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self.descriptor, self.size_bytes = descriptor, size_bytes
        self.map = mmap.mmap(descriptor, size_bytes)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)

    @classmethod
    def new(cls, size_bytes: int) -> Mapped:
        size_bytes = max(_PAGE, -(-size_bytes // _PAGE) * _PAGE)
        descriptor = os.memfd_create("warpbook", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size_bytes)
        # else whoever shares it could take it away while we read
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return cls(descriptor, size_bytes)

    @property
    def address(self) -> int:
        return int(self.bytes.ctypes.data)


class OpenedOnGpu:
    """The GPU's memory, which another process has taken."""

    def __init__(self, address: int) -> None:
        self.address = address

    def part(self, offset: int, size_bytes: int) -> Part:
        """Give some bytes of it, as PyTorch and others take them without a copy."""
        return Part(self.address + offset, size_bytes)


class Part:
    """Bytes on the GPU."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def handle_of(driver: Any, address: int) -> bytes:
    """Give what another process opens an allocation by.

    Raises:
        OSError: this system shares none.
    """
    error, handle = driver.cuIpcGetMemHandle(address)
    if error:
        raise OSError(f"cuIpcGetMemHandle: {error.name}")
    return ctypes.string_at(handle.getPtr(), 64)


def opened_on_gpu(handle: bytes) -> OpenedOnGpu:
    """Open another process's allocation in the context that is current.

    Raises:
        OSError: this system shares none.
    """
    driver: Any = importlib.import_module("cuda.bindings.driver")
    held = driver.CUipcMemHandle()
    ctypes.memmove(held.getPtr(), handle, 64)
    error, address = driver.cuIpcOpenMemHandle(held, _LAZY_PEER_ACCESS)
    if error:
        raise OSError(f"cuIpcOpenMemHandle: {error.name}")
    return OpenedOnGpu(int(address))
