"""Has a PyTorch that was built for the CPU take tensors that say `cuda:0`.

Such a build lacks two things: a device guard for CUDA, for which the one stands in that
Python may write for a private device, and an accelerator, of whose streams autograd's
engine would ask: it hears of none. Both are pointers that are changed in this process;
a build for CUDA has them, and gets the same ones. Nothing is changed before all of them
are found.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
#: DLPack's number of CUDA, and where a capsule names kind and number of the device
_DLPACK_CUDA, _DEVICE_AT = 2, 8
_PROCESSORS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_as_strided = torch.ops.aten.as_strided.default
_set = torch.ops.aten.set_.source_Storage_storage_offset

_address = ctypes.pythonapi.PyCapsule_GetPointer
_address.restype = ctypes.c_void_p
_address.argtypes = [ctypes.py_object, ctypes.c_char_p]


def as_cuda(cpu: Any) -> Any:
    """Give the same memory as a tensor of the GPU, of which the CPU's keeps hold.

    It is handed over by DLPack, and one field of the capsule is changed on the way, so
    that tensor, storage and dispatch keys say CUDA.
    """
    capsule = torch._C._to_dlpack(cpu)
    device = (ctypes.c_int32 * 2).from_address(
        _address(capsule, b"dltensor") + _DEVICE_AT
    )
    device[:] = [_DLPACK_CUDA, 0]
    made = torch._C._from_dlpack(capsule)
    # DLPack says 1 of sides that have one element
    return made if made.stride() == cpu.stride() else cuda_view(made, cpu)


def cuda_view(of: Any, like: Any) -> Any:
    """Give the view of a GPU's tensor that another is of the same memory.

    The CPU's kernel only looks at the storage, which both then share.
    """
    where = like.stride(), like.storage_offset()
    return _as_strided.redispatch(_PROCESSORS, of, like.shape, *where)


def cpu_view(of: Any, like: Any) -> Any:
    """Give the view of a CPU's tensor that one of the GPU is of the same."""
    where = like.storage_offset(), like.shape, like.stride()
    return torch.empty(0, dtype=like.dtype).set_(of.untyped_storage(), *where)


def give_memory(tensor: Any, storage: Any, like: Any) -> None:
    """Let a tensor of the GPU have other memory, or another shape."""
    where = like.storage_offset(), like.shape, like.stride()
    _set.redispatch(_PROCESSORS, tensor, storage, *where)


#: PyTorch's numbers of kinds of devices, and how many there are
_CUDA, _PRIVATE, _KINDS = 1, 20, 21
_GUARDS = "_ZN3c104impl26device_guard_impl_registryE"
_IS_ACCELERATOR = "_ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE"
_GET_ACCELERATOR = "_ZN2at11accelerator14getAcceleratorEb"
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_READABLE_AND_WRITABLE = 3


class NotSupported(Exception):
    """This PyTorch or machine is not known; the message says what is."""


class _Calls(NamedTuple):
    """Where a library keeps the address of a function that it calls."""

    address: int
    is_writable: bool


#: what the functions are that take the place of PyTorch's
_never = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int8)(lambda kind: False)
#: a std::optional<DeviceType>, as it is returned: the number, then whether there is one
_optional = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_bool)
_none = _optional(lambda is_checked: 0)
_cuda = _optional(lambda is_checked: _CUDA | 1 << 8)


def give_gpu() -> None:
    """Change the pointers, for the whole process and for good.

    Raises:
        NotSupported: some of them are not where they are known to be.
    """
    _look_at_machine()
    guards = _guards()
    engine = _calls("libtorch_cpu.so", _IS_ACCELERATOR)
    streams = _calls("libtorch_cpu.so", _GET_ACCELERATOR)
    parser = _calls("libtorch_python.so", _GET_ACCELERATOR)
    # held by PyTorch without a reference
    give_gpu.guard = guard = _guard()  # type: ignore[attr-defined]
    before = guards[_PRIVATE]
    torch._C._acc.register_python_privateuseone_device_guard(guard)
    if guards[_PRIVATE] in (None, before):
        raise NotSupported(_words("it registers device guards in another way"))
    guards[_CUDA], guards[_PRIVATE] = guards[_PRIVATE], before
    _write(engine, _never)
    _write(streams, _none)
    _write(parser, _cuda)


def _guard() -> Any:
    """Make a device guard: the current device is the GPU, which is the only one."""

    class Guard(torch._C._acc.DeviceGuard):  # type: ignore[misc]
        def type_(self) -> Any:
            return torch._C._autograd.DeviceType.CUDA

    return Guard()


def _look_at_machine() -> None:
    machine = f"{platform.system()} on {platform.machine()}"
    if sys.platform != "linux" or _POINTER_BYTES != 8 or sys.byteorder != "little":
        raise NotSupported(
            f"Real PyTorch under the simulated GPU takes 64-bit Linux; this is "
            f"{machine}."
        )
    if torch.version.hip is not None:
        raise NotSupported(_words("it was built for AMD's GPUs"))


def _guards() -> Any:
    """Give the table of device guards, by kind of device."""
    try:
        library = ctypes.CDLL(_path("libc10.so"))
        guards = (ctypes.c_void_p * _KINDS).in_dll(library, _GUARDS)
    except (OSError, ValueError):
        raise NotSupported(_words("it has no table of device guards")) from None
    if guards[_CUDA] and torch.version.cuda is None:
        raise NotSupported(_words("it has a device guard for CUDA already"))
    if not hasattr(torch._C, "_acc"):
        raise NotSupported(_words("it takes no device guard written in Python"))
    return guards


def _calls(library: str, symbol: str) -> _Calls:
    """Find the pointer by which a library calls a function of libtorch_cpu."""
    path = _path(library)
    try:
        function = getattr(ctypes.CDLL(_path("libtorch_cpu.so")), symbol)
    except (OSError, AttributeError):
        raise NotSupported(_words(f"it has no {symbol}")) from None
    wanted = ctypes.cast(function, ctypes.c_void_p).value or 0
    needle = wanted.to_bytes(_POINTER_BYTES, sys.byteorder)
    for begin, end, flags in _data_of(path):
        data = ctypes.string_at(begin, end - begin)
        at = data.find(needle)
        while at >= 0:
            if at % _POINTER_BYTES == 0:
                return _Calls(begin + at, flags.startswith("rw"))
            at = data.find(needle, at + 1)
    raise NotSupported(_words(f"{library} calls {symbol} in another way"))


def _data_of(path: str) -> Iterator[tuple[int, int, str]]:
    """Give where a library's data lies in this process, written data first."""
    mappings = []
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            span, flags, _, _, _, *name = line.split(maxsplit=5)
            if [part.rstrip("\n") for part in name] == [path] and flags[2] == "-":
                begin, end = (int(number, 16) for number in span.split("-"))
                mappings.append((begin, end, flags))
    writable = [mapping for mapping in mappings if mapping[2].startswith("rw")]
    # where calls were bound before the program began, their table is read-only
    yield from writable or [
        mapping for mapping in mappings if mapping[2].startswith("r-")
    ]


def _write(place: _Calls, function: Any) -> None:
    pointer = ctypes.c_void_p.from_address(place.address)
    if not place.is_writable:
        page = os.sysconf("SC_PAGE_SIZE")
        libc = ctypes.CDLL(None, use_errno=True)
        start = ctypes.c_void_p(place.address // page * page)
        if libc.mprotect(start, ctypes.c_size_t(page), _READABLE_AND_WRITABLE):
            raise NotSupported(_words("its table of calls can't be changed"))
    pointer.value = ctypes.cast(function, ctypes.c_void_p).value


def _path(library: str) -> str:
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    return os.path.realpath(os.path.join(folder, library))


def _words(why: str) -> str:
    return (
        f"PyTorch {torch.__version__} can't stand in for one with a GPU here: {why}. "
        "PyTorch 2.13 is known to work: pip install torch==2.13.0"
    )
