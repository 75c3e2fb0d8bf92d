"""CUDA's driver, as much of it as the trusted process needs, with errors in words."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases import execution
from warpbook_labs.gpu.arguments import packed
from warpbook_labs.gpu.errors import BadArguments, Crashed, DriverError, Hung
from warpbook_labs.lab.entry_names import NoSuchKernel, entry_named

Dim = tuple[int, int, int]

#: after these the context is of no use any more: the kernel did it
_CRASHES = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "it read or wrote an invalid address",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "it used a misaligned address",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "it reached an invalid instruction",
    "CUDA_ERROR_LAUNCH_FAILED": "it reached `__trap()`, or failed in a way that "
    "the GPU does not name",
    "CUDA_ERROR_ASSERT": "an assertion failed",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "its stack overflowed",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "it used an address in the wrong kind of "
    "memory",
    "CUDA_ERROR_INVALID_PC": "it jumped to an address without code",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the system's own watchdog stopped it",
}
#: what kernels may take with `malloc`, where they could hide something between calls
_HEAP_BYTES = 1 << 20
_MOST_STATIC_SHARED_BYTES = 48 << 10
_SPIN_S = 0.003
_NAP_S = 0.0005


class Kernel(NamedTuple):
    """A kernel of a loaded program."""

    name: str
    handle: Any
    #: bytes of each parameter
    parameters: tuple[int, ...]


class Program:
    """A loaded program; its `__device__` variables are as new."""

    def __init__(self, driver: Any, cubin: bytes) -> None:
        """Load it.

        Raises:
            DriverError: it is no program for this GPU.
        """
        self._driver = driver
        image = np.frombuffer(cubin, np.uint8)
        self._module = _checked(driver, driver.cuModuleLoadData(image.ctypes.data))
        self._kernels: dict[str, Kernel] = {}
        #: names of all kernels, as its sections of code are called
        names = re.findall(rb"\0\.text\.([\w$]+)", cubin)
        self._entries = [name.decode() for name in dict.fromkeys(names)]

    def kernel(self, name: str) -> Kernel:
        """Find a kernel.

        Raises:
            BadArguments: there is none of this name.
        """
        if name not in self._kernels:
            driver = self._driver
            error, handle = driver.cuModuleGetFunction(self._module, name.encode())
            if error.name == "CUDA_ERROR_NOT_FOUND":
                try:
                    entry = entry_named(name, self._entries)
                except NoSuchKernel as problem:
                    raise BadArguments(str(problem)) from None
                answer = driver.cuModuleGetFunction(self._module, entry.encode())
                error, handle = answer
            _checked(driver, (error, handle))
            sizes: list[int] = []
            while True:
                error, _, size = driver.cuFuncGetParamInfo(handle, len(sizes))
                if error:
                    break
                sizes.append(int(size))
            self._kernels[name] = Kernel(name, handle, tuple(sizes))
        return self._kernels[name]

    def unload(self) -> None:
        _checked(self._driver, self._driver.cuModuleUnload(self._module))


class Prepared(NamedTuple):
    """A launch with its arguments where the driver wants them."""

    kernel: Kernel
    grid: Dim
    block: Dim
    shared_bytes: int
    pointers: NDArray[np.uint64]
    #: what the pointers point to
    held: tuple[NDArray[np.uint8], ...]


class Device:
    """One GPU and a stream of our own on it."""

    def __init__(self) -> None:
        """Begin to use the first GPU that this process sees.

        Raises:
            DriverError: there is none, or the driver is too old.
        """
        try:
            self.driver = importlib.import_module("cuda.bindings.driver")
            _checked(self.driver, self.driver.cuInit(0))
        except (ImportError, OSError, RuntimeError) as problem:
            raise DriverError(f"CUDA's driver can't be loaded ({problem}).") from None
        self._device = self._call("cuDeviceGet", 0)
        context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", context)
        limit = self.driver.CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE
        self._call("cuCtxSetLimit", limit, _HEAP_BYTES)
        # copies wait for it, and it for them
        self.stream = self._call("cuStreamCreate", 0)
        self._begin = self._call("cuEventCreate", 0)
        self._end = self._call("cuEventCreate", 0)
        # a word of the host's memory that the stream can wait for
        self._gate_address = int(self._call("cuMemHostAlloc", 4096, 0))
        self._gate = np.ctypeslib.as_array(
            (ctypes.c_uint32 * 1).from_address(self._gate_address)
        )
        self._gate[0], self._turn = 0, 0

    @property
    def name(self) -> str:
        held: bytes = self._call("cuDeviceGetName", 256, self._device)
        return held.split(b"\0")[0].decode(errors="replace")

    @property
    def architecture(self) -> str:
        """Name what kernels are compiled for, such as "sm_90"."""
        return "sm_{}{}".format(
            self._attribute("COMPUTE_CAPABILITY_MAJOR"),
            self._attribute("COMPUTE_CAPABILITY_MINOR"),
        )

    @property
    def l2_bytes(self) -> int:
        """Give the size of the L2 cache."""
        return self._attribute("L2_CACHE_SIZE")

    @property
    def free_bytes(self) -> int:
        free, _ = self._call("cuMemGetInfo")
        return int(free)

    def _attribute(self, name: str) -> int:
        which = self.driver.CUdevice_attribute
        attribute = getattr(which, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._call("cuDeviceGetAttribute", attribute, self._device))

    def _call(self, function: str, *given: Any) -> Any:
        return _checked(self.driver, getattr(self.driver, function)(*given))

    def load(self, cubin: bytes) -> Program:
        """Load a program, with its variables as new."""
        return Program(self.driver, cubin)

    def assembled(self, image: bytes) -> bytes:
        """Give the cubin of PTX, which ends with a NUL; a cubin stays as it is.

        Lines of the source are kept, which changes no instruction.

        Raises:
            DriverError: the driver does not take it.
        """
        if image.startswith(b"\x7fELF"):
            return image
        text = self.driver.CUjitInputType.CU_JIT_INPUT_PTX
        keep_lines = self.driver.CUjit_option.CU_JIT_GENERATE_LINE_INFO
        state = self._call("cuLinkCreate", 1, [keep_lines], [1])
        try:
            held, name = np.frombuffer(image, np.uint8), b"kernel.ptx"
            given = held.ctypes.data, len(image), name
            self._call("cuLinkAddData", state, text, *given, 0, [], [])
            address, size_bytes = self._call("cuLinkComplete", state)
            return ctypes.string_at(int(address), int(size_bytes))
        finally:
            self._call("cuLinkDestroy", state)

    def allocate(self, size_bytes: int) -> int:
        """Take memory; give its address."""
        return int(self._call("cuMemAlloc", max(size_bytes, 1)))

    def free(self, address: int) -> None:
        self._call("cuMemFree", address)

    def upload(self, address: int, values: NDArray[Any]) -> None:
        """Copy to the GPU, and wait for it."""
        held = np.ascontiguousarray(values)
        if held.nbytes:
            self._call("cuMemcpyHtoD", address, held.ctypes.data, held.nbytes)
            # it returns when it has read all, which is not yet there for others
            self._call("cuStreamSynchronize", 0)

    def download(self, address: int, size_bytes: int) -> NDArray[np.uint8]:
        """Copy from the GPU, and wait for it."""
        held = np.empty(size_bytes, np.uint8)
        if size_bytes:
            self._call("cuMemcpyDtoH", held.ctypes.data, address, size_bytes)
        return held

    def pinned(self, size_bytes: int) -> NDArray[np.uint8]:
        """Take memory of the host that the GPU copies from and to by itself."""
        address = int(self._call("cuMemHostAlloc", size_bytes, 0))
        held: NDArray[np.uint8] = np.ctypeslib.as_array(
            (ctypes.c_uint8 * size_bytes).from_address(address)
        )
        return held

    def copy(self, to: int, held: int, size_bytes: int) -> None:
        """Copy within the GPU's memory, when what was launched before has ended."""
        if size_bytes:
            self._call("cuMemcpyDtoDAsync", to, held, size_bytes, self.stream)

    def prepare(
        self,
        program: Program,
        launch: execution.Launch,
        addresses: dict[str, int],
    ) -> Prepared:
        """Put the arguments of a launch where the driver wants them.

        Raises:
            BadArguments: the kernel takes others.
        """
        kernel = program.kernel(launch.entry)
        # Triton's kernels end with pointers to scratch memory that ours never ask for
        more = len(kernel.parameters) - len(launch.arguments)
        nulls = max(more, 0) if launch.constants else 0
        given = [*launch.arguments, *[execution.IntegerArgument(0)] * nulls]
        if len(given) != len(kernel.parameters):
            raise BadArguments(
                f"`{kernel.name}` has {len(kernel.parameters)} parameters, and is "
                f"launched with {len(given)} arguments."
            )
        held = tuple(
            packed(kernel.name, number, argument, size, addresses)
            for number, (argument, size) in enumerate(
                zip(given, kernel.parameters, strict=True), 1
            )
        )
        if launch.dynamic_shared_bytes > _MOST_STATIC_SHARED_BYTES:
            most = self.driver.CUfunction_attribute
            most = most.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            (error,) = self.driver.cuFuncSetAttribute(
                kernel.handle, most, launch.dynamic_shared_bytes
            )
            if error:
                raise BadArguments(
                    f"`{kernel.name}`: this GPU can't give "
                    f"{launch.dynamic_shared_bytes:,} bytes of shared memory."
                )
        pointers = np.array([argument.ctypes.data for argument in held], np.uint64)
        return Prepared(
            kernel,
            launch.grid,
            launch.block,
            launch.dynamic_shared_bytes,
            pointers,
            held,
        )

    def launch(self, prepared: Prepared) -> None:
        """Launch a kernel; it begins when what was launched before has ended.

        Raises:
            BadArguments: no GPU, or not this one, can launch it so.
        """
        (error,) = self.driver.cuLaunchKernel(
            prepared.kernel.handle,
            *prepared.grid,
            *prepared.block,
            prepared.shared_bytes,
            self.stream,
            prepared.pointers.ctypes.data,
            0,
        )
        if error.name in (
            "CUDA_ERROR_INVALID_VALUE",
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        ):
            raise BadArguments(
                f"`{prepared.kernel.name}` can't be launched on this GPU with a grid "
                f"of {prepared.grid} and blocks of {prepared.block}: too many threads, "
                "registers or too much shared memory for one block."
            )
        _checked(self.driver, (error,))

    def wait(self, patience_s: float) -> None:
        """Wait until all that was launched has ended.

        Raises:
            Hung: it takes longer.
            Crashed: a kernel was stopped by the GPU.
        """
        until = time.monotonic() + patience_s
        spin_until = time.monotonic() + _SPIN_S
        while True:
            (error,) = self.driver.cuStreamQuery(self.stream)
            if error.name != "CUDA_ERROR_NOT_READY":
                _checked(self.driver, (error,))
                return
            now = time.monotonic()
            if now > until:
                raise Hung(f"It did not end within {patience_s:g} s.")
            if now > spin_until:
                time.sleep(_NAP_S)

    def forget_kept_lines(self) -> None:
        """Have the L2 cache treat all alike that kernels asked it to keep."""
        # older GPUs keep nothing, and say that they don't know this
        self.driver.cuCtxResetPersistingL2Cache()

    def timed_ns(self, launches: Sequence[Prepared], patience_s: float) -> float:
        """Tell how long launches take, from the begin of the first to the end of all.

        All is handed to the GPU before it may begin, so that this process's own speed
        is not measured.
        """
        with self._timed():
            for launch in launches:
                self.launch(launch)
        return self._taken_ns(patience_s)

    def copied_both_ways_ns(
        self, address: int, held: NDArray[np.uint8], patience_s: float
    ) -> float:
        """Tell in the same way how long copies to the GPU and back take.

        Args:
            held: memory of `pinned`.
        """
        place, size_bytes = held.ctypes.data, held.nbytes
        with self._timed():
            self._call("cuMemcpyHtoDAsync", address, place, size_bytes, self.stream)
            self._call("cuMemcpyDtoHAsync", place, address, size_bytes, self.stream)
        return self._taken_ns(patience_s)

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        self._turn += 1
        self._call(
            "cuStreamWaitValue32", self.stream, self._gate_address, self._turn, 0
        )
        try:
            self._call("cuEventRecord", self._begin, self.stream)
            yield
            self._call("cuEventRecord", self._end, self.stream)
        finally:
            self._gate[0] = self._turn

    def _taken_ns(self, patience_s: float) -> float:
        self.wait(patience_s)
        return float(self._call("cuEventElapsedTime", self._begin, self._end)) * 1e6


def _checked(driver: Any, answer: Any) -> Any:
    """Give what a call returned, or raise its error."""
    error, *values = answer
    if not error:
        return values[0] if len(values) == 1 else tuple(values)
    if error.name in _CRASHES:
        raise Crashed(f"{_CRASHES[error.name]} ({error.name})")
    _, words = driver.cuGetErrorString(error)
    said = words.decode() if words else "no words"
    raise DriverError(f"CUDA's driver: {said} ({error.name}).")
