"""The one gate to NVML: every call of every monitor goes through `call`.

It knows the binding (`pynvml`) and nothing of metrics. The library is loaded by
the first call, never by an import, and again in a forked child. What NVML answers
instead of a value is raised as one of these, worded for a person:

Unavailable          NVML itself can't be used here (from `errors`)
DeviceLost           the GPU is gone (from `errors`)
NvmlError            this call gave no value; `state` is what a metric becomes
├── NotSupported     this GPU will never answer it
│   └── FunctionMissing   nor would any GPU: the driver or the binding is too old
├── NoPermission     this user may not ask
└── TimedOut         nothing happened in the time that the call was to wait
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from warpbook_monitors.errors import DeviceLost, MonitorError, Unavailable
from warpbook_monitors.frames import AbsenceReason, State

try:
    import pynvml
except ImportError:
    pynvml = None

#: NVML's memory call that counts what the driver reserved apart from what is used;
#: the binding hides it behind an argument, here it has its C name
MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"

_SHUTDOWN_PATIENCE_S = 1.0

# nvmlReturn_t, part of NVML's ABI
_NOT_SUPPORTED = 3
_NO_PERMISSION = 4
_DRIVER_NOT_LOADED = 9
_TIMEOUT = 10
_LIBRARY_NOT_FOUND = 12
_FUNCTION_NOT_FOUND = 13
_GPU_IS_LOST = 15
_RESET_REQUIRED = 16
_VERSION_MISMATCH = 18
_ARGUMENT_VERSION_MISMATCH = 25
_DEPRECATED = 26
_GPU_NOT_FOUND = 28
_UNKNOWN = 999

#: why NVML did not start: the reason, in words, and what to do
_START_FAILURES: dict[int, tuple[AbsenceReason, str, str]] = {
    _LIBRARY_NOT_FOUND: (
        "no_library",
        "The NVIDIA driver's library (libnvidia-ml.so.1) is not installed here.",
        "Install the NVIDIA driver; a container must be started with the GPUs "
        "(docker run --gpus all).",
    ),
    _DRIVER_NOT_LOADED: (
        "driver_not_loaded",
        "The NVIDIA driver is installed but not running.",
        "Load it (sudo modprobe nvidia) or reboot; a container must be started with "
        "the GPUs (docker run --gpus all).",
    ),
    _VERSION_MISMATCH: (
        "version_mismatch",
        "The running NVIDIA driver and its library have different versions, as after "
        "an update.",
        "Reboot the machine; restart the container if this is one.",
    ),
    _NO_PERMISSION: (
        "no_permission",
        "This user has no access to the NVIDIA driver.",
        "Ask for read and write access to /dev/nvidiactl and /dev/nvidia0, "
        "/dev/nvidia1, ... (often the group “video” or “render”).",
    ),
    _GPU_IS_LOST: (
        "lost",
        "A GPU has fallen off the bus, and NVML does not start.",
        "Look for “Xid” in the kernel log (dmesg); reset the GPU or reboot.",
    ),
    _FUNCTION_NOT_FOUND: (
        "version_mismatch",
        "The NVIDIA driver is too old for this version of nvidia-ml-py.",
        "Update the NVIDIA driver.",
    ),
    _UNKNOWN: (
        "unknown",
        "NVML did not start and gave no reason (Unknown Error).",
        "A container that lost its GPUs says this (after “systemctl daemon-reload” on "
        "the host): restart it. Otherwise look for NVRM in the kernel log (dmesg).",
    ),
}


class NvmlError(MonitorError):
    """NVML gave no value; asking again may help."""

    state: State = "unavailable"


class NotSupported(NvmlError):
    """This GPU does not answer this call."""

    state = "not_supported"


class FunctionMissing(NotSupported):
    """The driver, or the binding, is older than this call."""


class NoPermission(NvmlError):
    """This user may not make this call."""

    state = "no_permission"


class TimedOut(NvmlError):
    """Nothing happened in the time that the call was to wait."""


class Field(NamedTuple):
    """One field of `fields`."""

    value: float
    #: when the driver read it, in microseconds of its clock
    taken_us: int


#: for `fields`: all NVLinks together
ALL_LINKS = 0xFFFFFFFF

#: nvmlValueType_t: the member of the union that holds the value
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

_functions: dict[str, Callable[..., Any]] = {}
#: by function: why it is not called any more
_missing: dict[str, str] = {}
_lock = threading.Lock()
_started = False
_starts = 0


def call(name: str, *arguments: object) -> Any:
    """Call one NVML function by its C name; bytes come back as text.

    Raises:
        Unavailable: NVML can't be used on this machine.
        DeviceLost: the GPU is gone or must be reset.
        NvmlError: NVML gave no value, with the reason.
    """
    # no lock and no check on the way through: this runs some 150 times a second
    function = _functions.get(name) or _find(name)
    try:
        result = function(*arguments)
    except pynvml.NVMLError as error:
        raise _explain(name, error) from None
    except Exception as error:  # noqa: BLE001 - garbage that the binding fails to read
        raise NvmlError(f"{name} returned malformed data: {error!r:.200}") from None
    if type(result) is bytes:
        return result.decode("utf-8", "replace")
    return result


def fields(gpu: object, *names: str, scope: int = 0) -> list[Field]:
    """Read fields by the binding's names (`NVML_FI_...`) in one call.

    Raises:
        NvmlError: one of them has no value, with the reason.
        DeviceLost: the GPU is gone.
    """
    ids = [constant(name) for name in names]
    if None in ids:
        missing = names[ids.index(None)]
        raise FunctionMissing(f"This version of nvidia-ml-py has no {missing}: update.")
    answers = call(
        "nvmlDeviceGetFieldValues", gpu, [(field_id, scope) for field_id in ids]
    )
    read = []
    for name, answer in zip(names, answers, strict=True):
        if answer.nvmlReturn != 0:
            raise _explain(name, pynvml.NVMLError(answer.nvmlReturn))
        if not 0 <= answer.valueType < len(_MEMBERS):
            raise NvmlError(f"{name} is of an unknown type ({answer.valueType}).")
        value = getattr(answer.value, _MEMBERS[answer.valueType])
        read.append(Field(value, answer.timestamp))
    return read


def address(handle: object) -> int:
    """Give what makes two handles the same device; 0 for none."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def constant(name: str) -> Any:
    """Give the binding's constant or structure; None if this binding has none."""
    return getattr(pynvml, name, None)


def starts() -> int:
    """Tell how often it was started: what NVML keeps begins anew each time."""
    return _starts


def shutdown() -> None:
    """Give NVML back; the next call starts it again."""
    # a start that hangs holds the lock for good; the process must still end
    if not _lock.acquire(timeout=_SHUTDOWN_PATIENCE_S):
        return
    try:
        if _started:
            _forget()
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        pass  # the driver went first
    finally:
        _lock.release()


def _find(name: str) -> Callable[..., Any]:
    """Start NVML if need be, and find the function in the binding."""
    with _lock:
        if not _started:
            _start()
        if name in _missing:
            raise FunctionMissing(_missing[name])
        function = _memory_info_v2 if name == MEMORY_V2 else constant(name)
        if function is None:
            _missing[name] = f"This version of nvidia-ml-py has no {name}: update it."
            raise FunctionMissing(_missing[name])
        # the binding's wrappers decode strictly, and a name may hold any bytes
        _functions[name] = getattr(function, "__wrapped__", function)
        return _functions[name]


def _memory_info_v2(handle: object) -> Any:
    return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)


def _start() -> None:
    global _started, _starts
    if pynvml is None:
        raise Unavailable(
            "NVML",
            "not_installed",
            "The Python package nvidia-ml-py is not installed in this environment.",
            "Install it: pip install nvidia-ml-py",
        )
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        reason, message, remedy = _START_FAILURES.get(
            error.value,
            (
                "unknown",
                f"NVML did not start: {error}.",
                "Check whether nvidia-smi works, and what it reports.",
            ),
        )
        raise Unavailable("NVML", reason, message, remedy) from None
    _started = True
    _starts += 1


def _explain(name: str, error: Any) -> NvmlError | DeviceLost:
    """Turn NVML's code into the exception that says it in words."""
    code = error.value
    if code in (_GPU_IS_LOST, _RESET_REQUIRED, _GPU_NOT_FOUND):
        return DeviceLost(
            f"The GPU no longer answers ({error}). Look for “Xid” in the kernel log "
            "(dmesg); it may need a GPU reset or a reboot."
        )
    if code == _FUNCTION_NOT_FOUND:
        _missing[name] = f"The NVIDIA driver is too old: it has no {name}."
        _functions.pop(name, None)
        return FunctionMissing(_missing[name])
    if code in (_NOT_SUPPORTED, _ARGUMENT_VERSION_MISMATCH, _DEPRECATED):
        return NotSupported(f"This GPU does not support {name}.")
    if code == _TIMEOUT:
        return TimedOut(f"{name} timed out.")
    if code == _NO_PERMISSION:
        return NoPermission(f"This user may not call {name}; an administrator may.")
    return NvmlError(f"{name} failed: {error}.")


def _forget() -> None:
    global _started
    _functions.clear()
    _missing.clear()
    _started = False


def _forget_in_child() -> None:
    """NVML does not survive a fork, nor does a lock that another thread held."""
    global _lock
    _lock = threading.Lock()
    _forget()


os.register_at_fork(after_in_child=_forget_in_child)
