"""A stand-in for NVIDIA's library, built from C, and the handle that tests hold it by.

directory = build(tmp_path)                       # libnvidia-ml.so.1
stub = StubNvml(directory, state_file, "h200", "a100")
subprocess.run([...], env={**os.environ, **stub.env})
stub.set(0, power_mw=690_000)                     # while the program runs
stub.fault("nvmlDeviceGetPowerUsage", rc=LOST, gpu=1)
stub.calls("nvmlDeviceGetPcieThroughput")         # 0
stub.ring(0, XID_EVENT, 79)
"""

from __future__ import annotations

import ctypes
import mmap
import re
import subprocess
from pathlib import Path

import pynvml

SOURCE = Path(__file__).with_name("stubnvml.c")

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED = 3, 4, 9
XID_EVENT, SINGLE_BIT_EVENT, DOUBLE_BIT_EVENT, RETIREMENT_EVENT = 8, 1, 2, 0x400
FUNCTION_NOT_FOUND, LOST, VERSION_MISMATCH, UNKNOWN = 13, 15, 18, 999

EVERY_GPU = -1


class _Function(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 64),
        ("rc", ctypes.c_int),
        ("gpu", ctypes.c_int),
        ("delay_ms", ctypes.c_double),
        ("calls", ctypes.c_uint64),
    ]


class _Instance(ctypes.Structure):
    _fields_ = [
        ("present", ctypes.c_int),
        ("gpu_instance", ctypes.c_int),
        ("compute_instance", ctypes.c_int),
        ("slices", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("pid", ctypes.c_uint),
        ("memory_total_bytes", ctypes.c_uint64),
        ("memory_used_bytes", ctypes.c_uint64),
        ("gpm", ctypes.c_double * 128),
    ]


class _Event(ctypes.Structure):
    _fields_ = [
        ("gpu", ctypes.c_int),
        ("gpu_instance", ctypes.c_int),
        ("type", ctypes.c_uint64),
        ("data", ctypes.c_uint64),
    ]


class _Gpu(ctypes.Structure):
    _fields_ = [
        ("shape", ctypes.c_char * 16),
        ("name", ctypes.c_char * 96),
        ("rc", ctypes.c_int),
        ("gpm_supported", ctypes.c_int),
        ("mig", ctypes.c_int),
        ("nvlinks", ctypes.c_int),
        ("capability_major", ctypes.c_int),
        ("capability_minor", ctypes.c_int),
        ("cores", ctypes.c_int),
        ("bus_bits", ctypes.c_int),
        ("pcie_generation", ctypes.c_int),
        ("pcie_width", ctypes.c_int),
        ("process_count", ctypes.c_int),
        ("pids", ctypes.c_uint * 8),
        ("process_kinds", ctypes.c_int * 8),
        ("process_bytes", ctypes.c_uint64 * 8),
        ("process_sm_percent", ctypes.c_uint * 8),
        ("memory_total_bytes", ctypes.c_uint64),
        ("memory_reserved_bytes", ctypes.c_uint64),
        ("memory_used_bytes", ctypes.c_uint64),
        ("energy_mj", ctypes.c_uint64),
        ("clocks_event_reasons", ctypes.c_uint64),
        ("utilization_percent", ctypes.c_double),
        ("memory_utilization_percent", ctypes.c_double),
        ("power_mw", ctypes.c_double),
        ("power_limit_mw", ctypes.c_double),
        ("temperature_celsius", ctypes.c_double),
        ("sm_clock_mhz", ctypes.c_double),
        ("memory_clock_mhz", ctypes.c_double),
        ("sm_clock_max_mhz", ctypes.c_double),
        ("memory_clock_max_mhz", ctypes.c_double),
        ("pcie_tx_kb_per_s", ctypes.c_double),
        ("pcie_rx_kb_per_s", ctypes.c_double),
        ("memory_temperature_celsius", ctypes.c_double),
        ("slowdown_celsius", ctypes.c_double),
        ("shutdown_celsius", ctypes.c_double),
        ("encoder_percent", ctypes.c_double),
        ("decoder_percent", ctypes.c_double),
        ("jpeg_percent", ctypes.c_double),
        ("optical_flow_percent", ctypes.c_double),
        ("pcie_generation_now", ctypes.c_int),
        ("pcie_width_now", ctypes.c_int),
        ("performance_state", ctypes.c_int),
        ("has_ecc", ctypes.c_int),
        ("remaps_rows", ctypes.c_int),
        ("rows_pending", ctypes.c_int),
        ("rows_failed", ctypes.c_int),
        ("pages_pending", ctypes.c_int),
        ("rows_corrected", ctypes.c_int),
        ("rows_uncorrected", ctypes.c_int),
        ("pages_single", ctypes.c_int),
        ("pages_double", ctypes.c_int),
        ("ecc", ctypes.c_uint64 * 4),
        ("event_types", ctypes.c_uint64),
        ("instances", _Instance * 7),
        ("gpm", ctypes.c_double * 128),
    ]


class _State(ctypes.Structure):
    _fields_ = [
        ("gpu_count", ctypes.c_int),
        ("no_delays", ctypes.c_int),
        ("gpm_samples", ctypes.c_int64),
        ("shortest_window_ms", ctypes.c_double),
        ("event_sets", ctypes.c_int64),
        ("event_count", ctypes.c_int),
        ("event_next", ctypes.c_int),
        ("events", _Event * 32),
        ("functions", _Function * 128),
        ("gpus", _Gpu * 16),
    ]


def build(directory: Path, *flags: str) -> Path:
    """Compile the library into `directory`; `-DOLD_DRIVER` leaves newer calls out."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            *("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"),
            *flags,
            "-Wl,-soname,libnvidia-ml.so.1",
            *("-o", directory / "libnvidia-ml.so.1", SOURCE),
        ],
        check=True,
    )
    return directory


def load(directory: Path) -> ctypes.CDLL:
    """Load it into this process: pynvml then finds it by its SONAME.

    Without STUB_NVML_GPUS in the environment it behaves as if it were not there.
    """
    return ctypes.CDLL(str(directory / "libnvidia-ml.so.1"), mode=ctypes.RTLD_GLOBAL)


class StubNvml:
    """Some GPUs whose values, faults and call counts lie in one mapped file."""

    def __init__(self, directory: Path, state_file: Path, *gpus: str) -> None:
        library = load(directory)
        size = ctypes.sizeof(_State)
        assert library.stub_nvml_state_size() == size, "the two layouts differ"
        state_file.write_bytes(bytes(size))
        with state_file.open("r+b") as file:
            self._state = _State.from_buffer(mmap.mmap(file.fileno(), size))
        for slot, name in zip(self._state.functions, function_names(), strict=False):
            slot.name, slot.delay_ms, slot.gpu = name.encode(), -1, EVERY_GPU
        shapes = ",".join(gpus)
        if library.stub_nvml_shape(ctypes.byref(self._state), shapes.encode()):
            raise ValueError(f"unknown shape in {shapes!r}")
        #: what a process needs to run on this stub
        self.env = {
            "LD_LIBRARY_PATH": str(directory),
            "STUB_NVML_GPUS": shapes,
            "STUB_NVML_STATE": str(state_file),
        }

    def set(self, gpu: int, **values: float | bytes) -> None:
        """Change fields of a GPU: see `_Gpu`."""
        for name, value in values.items():
            known = getattr(self._state.gpus[gpu], name)
            setattr(self._state.gpus[gpu], name, type(known)(value))

    def hold(self, gpu: int, *processes: tuple[int, int], kinds: int = 1) -> None:
        """Let these (PID, bytes) hold memory; `kinds` are the lists that have them."""
        state = self._state.gpus[gpu]
        for at, (pid, used_bytes) in enumerate(processes):
            state.pids[at] = pid
            state.process_bytes[at] = used_bytes
            state.process_kinds[at] = kinds
        state.process_count = len(processes)

    def work(self, gpu: int, *processes: tuple[int, int]) -> None:
        """Let these (PID, percent of the multiprocessors) work, and no others."""
        self.hold(gpu, *((pid, 1 << 30) for pid, _ in processes))
        for at, (_, percent) in enumerate(processes):
            self._state.gpus[gpu].process_sm_percent[at] = percent

    def set_gpm(self, gpu: int, **values: float) -> None:
        """Change GPM metrics by the binding's name, in percent or MiB/s."""
        for name, value in values.items():
            number = getattr(pynvml, f"NVML_GPM_METRIC_{name}")
            self._state.gpus[gpu].gpm[number] = value

    def set_ecc(self, gpu: int, *counts: int) -> None:
        """Corrected and uncorrected since the driver started, then ever."""
        self._state.gpus[gpu].ecc[:] = counts

    def make_instance(
        self, gpu: int, slot: int, slices: int = 1, **gpm: float
    ) -> _Instance:
        """Make a MIG instance on a GPU with `mig=1`, in a slot from 0 to 6."""
        instance = self._state.gpus[gpu].instances[slot]
        instance.gpu_instance, instance.compute_instance = 7 + slot, 0
        instance.slices, instance.multiprocessors = slices, 16 * slices
        instance.memory_total_bytes = slices * 18 << 30
        for name, value in gpm.items():
            instance.gpm[getattr(pynvml, f"NVML_GPM_METRIC_{name}")] = value
        instance.present = 1
        return instance

    def destroy_instance(self, gpu: int, slot: int) -> None:
        """Destroy a MIG instance while a program may be reading it."""
        self._state.gpus[gpu].instances[slot].present = 0

    def ring(self, gpu: int, kind: int, data: int = 0, gpu_instance: int = -1) -> None:
        """Let a GPU tell an event: NVML's type, and the number of an XID."""
        slot = self._state.events[self._state.event_count % 32]
        slot.gpu, slot.type, slot.data = gpu, kind, data
        slot.gpu_instance = gpu_instance
        self._state.event_count += 1

    @property
    def event_sets(self) -> int:
        """Event sets made and not yet freed."""
        return int(self._state.event_sets)

    def fault(
        self,
        function: str,
        rc: int = 0,
        delay_ms: float | None = None,
        gpu: int = EVERY_GPU,
    ) -> None:
        """Make a C function return `rc`, or take `delay_ms`; no more: take it back."""
        slot = self._slot(function)
        slot.rc, slot.gpu = rc, gpu
        slot.delay_ms = -1 if delay_ms is None else delay_ms

    def calls(self, function: str | None = None) -> int:
        """How often a C function was called; without a name, all of them."""
        if function is not None:
            return int(self._slot(function).calls)
        return sum(int(slot.calls) for slot in self._state.functions)

    def no_delays(self) -> None:
        """Let calls take no time, unless a fault says so."""
        self._state.no_delays = 1

    @property
    def shortest_window_ms(self) -> float:
        """The shortest window that GPM was asked for; infinite if none was."""
        return float(self._state.shortest_window_ms)

    @property
    def gpm_samples(self) -> int:
        """GPM samples allocated and not yet freed."""
        return int(self._state.gpm_samples)

    def _slot(self, function: str) -> _Function:
        for slot in self._state.functions:
            if slot.name == function.encode():
                return slot
        raise ValueError(f"the stub has no function {function}")


def function_names() -> list[str]:
    return re.findall(r"^ret (nvml\w+)\(", SOURCE.read_text(), re.MULTILINE)
