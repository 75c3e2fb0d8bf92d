"""Memory that processes share: the host's as an open file, the GPU's by a handle."""

from __future__ import annotations

import ctypes
import fcntl
import importlib
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PAGE = mmap.PAGESIZE
#: of linux/fcntl.h: nobody who can write it may make it longer or shorter
_SEALS = 0x1 | 0x2 | 0x4
_LAZY_PEER_ACCESS = 1


class Mapped:
    """Memory of the host, behind an open file that has no name."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        """Map it."""
        self.descriptor, self.size_bytes = descriptor, size_bytes
        self.map = mmap.mmap(descriptor, size_bytes)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self.map, np.uint8)

    @classmethod
    def new(cls, size_bytes: int) -> Mapped:
        """Make some, full of zeros."""
        size_bytes = max(_PAGE, -(-size_bytes // _PAGE) * _PAGE)
        descriptor = os.memfd_create("warpbook", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(descriptor, size_bytes)
        # else whoever shares it could take it away while we read
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        return cls(descriptor, size_bytes)

    @property
    def address(self) -> int:
        """Tell where it lies."""
        return int(self.bytes.ctypes.data)


class OpenedOnGpu:
    """The GPU's memory, which another process has taken."""

    def __init__(self, address: int) -> None:
        """Take its address here."""
        self.address = address

    def part(self, offset: int, size_bytes: int) -> Part:
        """Give some bytes of it, as PyTorch and others take them without a copy."""
        return Part(self.address + offset, size_bytes)


class Part:
    """Bytes on the GPU."""

    def __init__(self, address: int, size_bytes: int) -> None:
        """Say which."""
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
