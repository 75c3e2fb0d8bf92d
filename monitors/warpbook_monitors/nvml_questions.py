"""What a GPU is asked, call by call: which metrics, how often, and why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook_monitors import gpm, nvml
from warpbook_monitors.frames import State
from warpbook_monitors.gpm import GpmWindow, Values
from warpbook_monitors.metrics import GPM, NVML
from warpbook_monitors.nvml import FunctionMissing, NotSupported, NvmlError, call

#: the columns of a reading
METRICS = {**NVML, **GPM}

#: energy takes 2.8 ms (measured on an H200); a process list is long where many share
SLOW_PERIOD_NS = 1_000_000_000
#: a call that NVML refused is made again after this
RETRY_NS = 10_000_000_000
#: unexplained failures in a row until a metric is said to be unavailable
_PATIENCE = 3

_TEMPERATURE_GPU, _CLOCK_SM, _CLOCK_MEMORY = 0, 1, 2  # NVML's enums

Handle = Any


def _utilization(gpu: Handle) -> Values:
    rates = call("nvmlDeviceGetUtilizationRates", gpu)
    return rates.gpu / 100, rates.memory / 100


def _memory(gpu: Handle) -> Values:
    return (call(nvml.MEMORY_V2, gpu).used,)


def _memory_with_reserved(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetMemoryInfo", gpu).used,)


def _power(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetPowerUsage", gpu) / 1000,)


def _temperature(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetTemperature", gpu, _TEMPERATURE_GPU),)


def _temperature_v(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetTemperatureV", gpu, _TEMPERATURE_GPU),)


def _sm_clock(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetClockInfo", gpu, _CLOCK_SM),)


def _memory_clock(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetClockInfo", gpu, _CLOCK_MEMORY),)


def _event_reasons(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetCurrentClocksEventReasons", gpu),)


def _throttle_reasons(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu),)


def _process_count(gpu: Handle) -> Values:
    return (len(call("nvmlDeviceGetComputeRunningProcesses", gpu)),)


def _energy(gpu: Handle) -> Values:
    return (call("nvmlDeviceGetTotalEnergyConsumption", gpu) / 1000,)


class Question:
    """What one call answers: some metrics, their last values and their state."""

    def __init__(
        self,
        names: tuple[str, ...],
        *ways: Callable[[Handle], Values],
        period_ns: int = 0,
        not_supported: str = "",
    ) -> None:
        """Ask the first of `ways` that the GPU supports, once a `period_ns`."""
        self.names = names
        first = tuple(METRICS).index(names[0])
        #: where the metrics stand in a reading, side by side
        self.part = slice(first, first + len(names))
        self.state: State = "ok"
        self.why = ""
        self.due_ns = 0
        self.values: Values = (None,) * len(names)
        self._ways = list(ways)
        self._period_ns = period_ns
        self._not_supported = not_supported
        # nothing worked yet, so the first failure counts
        self._failures = _PATIENCE

    def ask(self, gpu: Handle, now_ns: int) -> bool:
        """Make the call; True if the state changed.

        Raises:
            DeviceLost: the GPU is gone.
        """
        try:
            self.values = self._answer(gpu)
        except NvmlError as error:
            return self._fail(error, now_ns)
        self._failures = 0
        self.due_ns = now_ns + self._period_ns
        return self._become("ok", "")

    def _answer(self, gpu: Handle) -> Values:
        refusals = []
        for way in self._ways:
            try:
                values = way(gpu)
            except NotSupported as error:
                refusals.append(error)
                continue
            if refusals:
                self._ways.remove(way)
                self._ways.insert(0, way)
            return values
        # that the driver lacks a way says less than that the GPU refused one
        raise min(refusals, key=lambda error: isinstance(error, FunctionMissing))

    def _fail(self, error: NvmlError, now_ns: int) -> bool:
        self.values = (None,) * len(self.names)
        self._failures += 1
        if error.state == "unavailable" and self._failures < _PATIENCE:
            return False
        self.due_ns = now_ns + RETRY_NS
        why = self._not_supported if type(error) is NotSupported else ""
        return self._become(error.state, why or str(error))

    def _become(self, state: State, why: str) -> bool:
        changed = (state, why) != (self.state, self.why)
        self.state, self.why = state, why
        return changed


def questions(window: GpmWindow) -> list[Question]:
    """Everything that is asked of a GPU, in the order of asking."""
    return [
        # first, because a window is as regular as the moments of its samples
        Question(gpm.NAMES, window.read),
        Question(("gpu_utilization_ratio", "memory_utilization_ratio"), _utilization),
        Question(
            ("memory_used_bytes",),
            _memory,
            _memory_with_reserved,
            not_supported="NVML does not count this GPU's memory. Where GPU and CPU "
            "share one memory (Grace, Spark, Jetson), see the host's.",
        ),
        Question(("power_watts",), _power),
        Question(("temperature_celsius",), _temperature, _temperature_v),
        Question(("sm_clock_mhz",), _sm_clock),
        Question(("memory_clock_mhz",), _memory_clock),
        # named "throttle reasons" before driver 535
        Question(("clocks_event_reasons",), _event_reasons, _throttle_reasons),
        Question(("process_count",), _process_count, period_ns=SLOW_PERIOD_NS),
        Question(("energy_joules",), _energy, period_ns=SLOW_PERIOD_NS),
    ]
