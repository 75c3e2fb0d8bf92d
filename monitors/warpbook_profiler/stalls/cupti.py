"""The calls of CUPTI that sample program counters, by ctypes on the libcupti here."""

from __future__ import annotations

import ctypes
import ctypes.util
import glob
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.stalls import State

_size, _pointer = ctypes.c_size_t, ctypes.c_void_p
_u32, _u64 = ctypes.c_uint32, ctypes.c_uint64
_LONGEST_NAME = 128
#: of a record of one program counter, in bytes; its fields as `struct` reads them
RECORD, RECORD_BYTES = "<QQQIIQQQI4x", 64
#: attributes of the configuration
_PERIOD, _REASONS, _HARDWARE, _MODE, _BUFFER = 1, 2, 4, 5, 8
_KERNEL_SERIALIZED = 2
#: of `cuptiGetVersion`, CUDA 12.6: before it, letting go can crash replays of graphs
_SAFE_TO_LET_GO = 24

NOT_HERE = "Stall samples are not available on this device"
ADMIN_ONLY = (
    "The driver gives GPU counters only to administrators: load the module nvidia with "
    "NVreg_RestrictProfilingToAdminUsers=0 (RmProfilingAdminOnly in "
    "/proc/driver/nvidia/params), or give the process CAP_SYS_ADMIN"
)
_HELD = (
    "Another tool holds the sampler (Nsight Compute, Nsight Systems, DCGM or another "
    "profiler): end it and run this again"
)
#: of a call's result, the state and what to say
_RESULTS: dict[int, tuple[State, str]] = {
    3: ("failed", "The context of the GPU is lost: restart the kernel"),
    8: ("failed", "The GPU has no memory left for samples: free some of it"),
    **dict.fromkeys((35, 40), ("denied", ADMIN_ONLY)),
    **dict.fromkeys((26, 36, 38, 39), ("held", _HELD)),
    **dict.fromkeys((2, 11, 14, 27, 33, 41, 42, 43, 44, 45), ("unsupported", NOT_HERE)),
}


_Callback = ctypes.CFUNCTYPE(None, _pointer, ctypes.c_int, _u32, _pointer)


class NotSampled(TraceError):
    """There are no samples; the message says why, and what to do about it."""

    def __init__(self, state: State, reason: str) -> None:
        """Take the state of `Stalls`, and a sentence without its full stop."""
        super().__init__(f"{reason}.")
        self.state = state


class Parameters(ctypes.Structure):
    """What every call begins with."""

    _fields_ = [("size", _size), ("private", _pointer), ("context", _pointer)]


class _Count(Parameters):
    _fields_ = [("count", ctypes.POINTER(_size))]


class _Names(Parameters):
    _fields_ = [
        ("count", _size),
        ("numbers", ctypes.POINTER(_u32)),
        ("names", ctypes.POINTER(_pointer)),
    ]


class _Data(Parameters):
    _fields_ = [("data", _pointer)]


class _Value(ctypes.Union):
    _fields_ = [("words", _u64 * 3), ("number", _u32), ("pointer", _pointer)]


class _Attribute(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("status", ctypes.c_int), ("value", _Value)]


class _Configuration(Parameters):
    _fields_ = [("count", _size), ("attributes", ctypes.POINTER(_Attribute))]


class _Samples(ctypes.Structure):
    _pack_ = 8
    _fields_ = [
        ("size", _size),
        ("room", _size),
        ("total", _u64),
        ("dropped", _u64),
        ("count", _size),
        ("remaining", _size),
        ("range", _u64),
        ("records", _pointer),
        ("others", _u64),
        ("is_full", ctypes.c_uint8),
    ]


class _Crc(ctypes.Structure):
    _fields_ = [
        ("size", _size),
        ("length", _size),
        ("cubin", _pointer),
        ("crc", _u64),
    ]


class Buffer:
    """Room for records, each with room for every reason."""

    def __init__(self, records: int, reasons: int) -> None:
        self._reasons = (_u64 * (records * reasons))()
        self._records = (ctypes.c_uint8 * (records * RECORD_BYTES))()
        words = _u64.from_buffer
        for at in range(records):
            start = at * RECORD_BYTES
            words(self._records, start).value = RECORD_BYTES
            address = ctypes.addressof(self._reasons) + at * reasons * 8
            words(self._records, start + 48).value = address
        self.data = _Samples(
            size=ctypes.sizeof(_Samples),
            room=records,
            records=ctypes.addressof(self._records),
        )

    @property
    def records(self) -> memoryview:
        """Return those that are filled, one after the other."""
        return memoryview(self._records)[: self.data.count * RECORD_BYTES]


class Cupti:
    """CUPTI for the contexts of this process."""

    def __init__(self, path: str) -> None:
        """Load a library.

        Raises:
            NotSampled: it can't be loaded, or is too old.
        """
        try:
            self._library = ctypes.CDLL(path)
            for name in ("Enable", "Disable", "GetData", "SetConfigurationAttribute"):
                getattr(self._library, f"cuptiPCSampling{name}")
        except (OSError, AttributeError) as problem:
            reason = f"{NOT_HERE}: {Path(path).name} is not usable ({problem})"
            raise NotSampled("unsupported", reason) from None

    def enable(self, context: int) -> None:
        self._call("PCSamplingEnable", Parameters(context=context))

    def disable(self, context: int) -> None:
        self._call("PCSamplingDisable", Parameters(context=context))

    def reasons(self, context: int) -> dict[int, str]:
        """Return CUPTI's names of reasons by number."""
        count = _size()
        self._call(
            "PCSamplingGetNumStallReasons",
            _Count(context=context, count=ctypes.pointer(count)),
        )
        numbers = (_u32 * count.value)()
        texts = [ctypes.create_string_buffer(_LONGEST_NAME) for _ in numbers]
        pointers = (_pointer * count.value)(*map(ctypes.addressof, texts))
        names = _Names(
            context=context, count=count.value, numbers=numbers, names=pointers
        )
        self._call("PCSamplingGetStallReasons", names)
        return {
            number: text.value.decode(errors="replace")
            for number, text in zip(numbers, texts, strict=True)
        }

    def configure(
        self,
        context: int,
        reasons: dict[int, str],
        period: int,
        hardware_bytes: int,
        buffer: Buffer,
    ) -> None:
        """Say what is sampled.

        Args:
            context: whose kernels.
            reasons: that are counted, by number.
            period: a sample every two to the power of this many cycles.
            hardware_bytes: on the GPU, for samples that are yet to be read.
            buffer: CUPTI's own, which must not be the one that `read` fills.
        """
        numbers = (_u32 * len(reasons))(*reasons)
        attributes = (_Attribute * 5)()
        attributes[0].kind = _REASONS
        attributes[0].value.words[0] = len(reasons)
        attributes[0].value.words[1] = ctypes.addressof(numbers)
        attributes[1].kind = _BUFFER
        attributes[1].value.pointer = ctypes.addressof(buffer.data)
        attributes[2].kind, attributes[2].value.number = _PERIOD, period
        attributes[3].kind = _MODE
        attributes[3].value.number = _KERNEL_SERIALIZED
        attributes[4].kind = _HARDWARE
        attributes[4].value.words[0] = hardware_bytes
        self._call(
            "PCSamplingSetConfigurationAttribute",
            _Configuration(
                context=context, count=len(attributes), attributes=attributes
            ),
        )

    def read(self, context: int, buffer: Buffer) -> None:
        """Fill a buffer with what was sampled since."""
        data = ctypes.addressof(buffer.data)
        self._call("PCSamplingGetData", _Data(context=context, data=data))

    def let_go(self) -> None:
        """Detach CUPTI from this process, unless another tool uses it.

        Attached and without a sampler it does not see kernels being loaded, and gives
        no samples of them later.
        """
        version, subscriber = _u32(), _pointer()
        library = self._library
        library.cuptiGetVersion(ctypes.byref(version))
        # there is one subscriber at most
        nobody = _Callback(lambda *_: None)
        if version.value < _SAFE_TO_LET_GO or library.cuptiSubscribe(
            ctypes.byref(subscriber), nobody, None
        ):
            return
        library.cuptiUnsubscribe(subscriber)
        # it keeps Python's other threads from calling CUDA meanwhile
        ctypes.PyDLL(library._name).cuptiFinalize()

    def crc(self, cubin: bytes) -> int:
        """Return CUPTI's number of a cubin, which its samples have, too."""
        text = ctypes.c_char_p(cubin)
        crc = _Crc(length=len(cubin), cubin=ctypes.cast(text, _pointer).value)
        self._call("GetCubinCrc", crc)
        return int(crc.crc)

    def _call(self, name: str, parameters: ctypes.Structure) -> None:
        # as CUPTI's macro has it: without what pads the last field
        last = getattr(type(parameters), type(parameters)._fields_[-1][0])
        parameters.size = last.offset + last.size
        result = getattr(self._library, f"cupti{name}")(ctypes.byref(parameters))
        if result == 0:
            return
        text = ctypes.c_char_p()
        self._library.cuptiGetResultString(result, ctypes.byref(text))
        said = (text.value or b"").decode(errors="replace")
        state, reason = _RESULTS.get(result, ("failed", "The sampler failed"))
        raise NotSampled(state, f"{reason} ({said or result} of cupti{name})")


@cache
def cupti() -> Cupti:
    """Return the library that this process has, or else the first that is installed.

    Raises:
        NotSampled: there is none.
    """
    problem = NotSampled("unsupported", f"{NOT_HERE}: no libcupti is installed")
    for path in _libraries():
        try:
            return Cupti(path)
        except NotSampled as of_this:
            problem = of_this
    raise problem


def _libraries() -> Iterator[str]:
    try:
        maps = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        maps = ""
    for line in maps.splitlines():
        path = line.partition("/")[2]
        if "libcupti.so" in path:
            yield f"/{path}"
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    patterns = [f"{folder}/nvidia/*/lib/libcupti.so.*" for folder in sys.path if folder]
    patterns += [f"{home}/extras/CUPTI/lib64/libcupti.so.*" for home in homes if home]
    patterns += [f"{home}/lib64/libcupti.so.*" for home in homes if home]
    for pattern in patterns:
        yield from sorted(glob.glob(pattern))
    found = ctypes.util.find_library("cupti")
    if found is not None:
        yield found
