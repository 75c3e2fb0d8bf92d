"""The contexts and devices of this process, by CUDA's driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from warpbook_profiler.stalls.cupti import NOT_HERE, NotSampled

#: of `cuDeviceGetAttribute`
_MAJOR = 75
#: the first that CUPTI samples by reasons
_LEAST_MAJOR = 7


@dataclass(frozen=True)
class Context:
    """A context, and the device that it is of."""

    handle: int
    device: str


class Driver:
    """CUDA's driver, if it is here."""

    def __init__(self) -> None:
        """Find it.

        Raises:
            NotSampled: there is none.
        """
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            reason = f"{NOT_HERE}: it is not NVIDIA's, or has no driver here"
            raise NotSampled("unsupported", reason) from None

    def contexts(self) -> Sequence[Context]:
        """Return the current one, and the primary ones that work.

        Raises:
            NotSampled: there is none, or a device is too old.
        """
        count = ctypes.c_int()
        self._library.cuDeviceGetCount(ctypes.byref(count))
        found: dict[int, Context] = {}
        for number in range(count.value):
            handle = self._primary(number)
            if handle is not None:
                found[handle] = self._context(handle, number)
        current, device = ctypes.c_void_p(), ctypes.c_int()
        self._library.cuCtxGetCurrent(ctypes.byref(current))
        if current.value is not None and current.value not in found:
            self._library.cuCtxGetDevice(ctypes.byref(device))
            found[current.value] = self._context(current.value, device.value)
        if not found:
            raise NotSampled("nothing", "Nothing has run on a GPU in this process")
        return tuple(found.values())

    def wait(self, context: Context) -> None:
        """Wait for all work of a context.

        Raises:
            NotSampled: the context is lost.
        """
        self._library.cuCtxPushCurrent_v2(ctypes.c_void_p(context.handle))
        try:
            result = self._library.cuCtxSynchronize()
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        if result:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(text))
            said = (text.value or b"").decode(errors="replace")
            reason = f"The GPU failed ({said or result}): restart the kernel"
            raise NotSampled("failed", reason)

    def _primary(self, number: int) -> int | None:
        flags, is_active = ctypes.c_uint(), ctypes.c_int()
        self._library.cuDevicePrimaryCtxGetState(
            number, ctypes.byref(flags), ctypes.byref(is_active)
        )
        if not is_active.value:
            return None
        handle = ctypes.c_void_p()
        if self._library.cuDevicePrimaryCtxRetain(ctypes.byref(handle), number):
            return None
        # whoever made it keeps it
        self._library.cuDevicePrimaryCtxRelease_v2(number)
        return handle.value

    def _context(self, handle: int, number: int) -> Context:
        name = ctypes.create_string_buffer(256)
        self._library.cuDeviceGetName(name, len(name), number)
        device = name.value.decode(errors="replace")
        major = ctypes.c_int()
        self._library.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, number)
        if major.value < _LEAST_MAJOR:
            reason = f"{NOT_HERE}: {device} is older than Volta"
            raise NotSampled("unsupported", reason)
        return Context(handle, device)
