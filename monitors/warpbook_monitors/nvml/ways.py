"""How each metric is got out of NVML, and in which tier.

Cheap calls (0.7 to 5 µs on an H200) are made at every read, costly ones once a
second, and what hardly ever changes every ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpbook_monitors.metrics import GPU
from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gate import NvmlError, call
from warpbook_monitors.nvml.gpm import GpmWindow
from warpbook_monitors.nvml.links import Links
from warpbook_monitors.nvml.questions import Question, Sheet, Values, Way

#: energy takes 2.8 ms (measured on an H200); a process list is long where many share
SLOW_PERIOD_NS = 1_000_000_000
RARE_PERIOD_NS = 10_000_000_000

# NVML's enums
_TEMPERATURE_GPU, _CLOCK_SM, _CLOCK_MEMORY = 0, 1, 2
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1
_SLOWEST_STATE = 15

_NO_MEMORY = (
    "NVML does not count this GPU's memory. Where GPU and CPU share one memory "
    "(Grace, Spark, Jetson), see the host's."
)
_NO_ECC = "This GPU has no ECC, or it is off (nvidia-smi -e 1 and a reboot)."

Handle = Any


def _one(function: str, *arguments: int, scale: float = 1.0) -> Way:
    """One number from one call."""

    def ask(gpu: Handle) -> Values:
        value = call(function, gpu, *arguments)
        return (value if scale == 1.0 else value / scale,)

    return ask


def _share(function: str) -> Way:
    """A percentage that comes with the period over which it was measured."""

    def ask(gpu: Handle) -> Values:
        percent, _period_us = call(function, gpu)
        return (percent / 100,)

    return ask


def _fields(*names: str) -> Way:
    def ask(gpu: Handle) -> Values:
        return tuple(field.value for field in nvml.fields(gpu, *names))

    return ask


def _utilization(gpu: Handle) -> Values:
    rates = call("nvmlDeviceGetUtilizationRates", gpu)
    return rates.gpu / 100, rates.memory / 100


def _memory(function: str) -> Way:
    def ask(gpu: Handle) -> Values:
        memory = call(function, gpu)
        return memory.used, memory.free

    return ask


def _reserved(gpu: Handle) -> Values:
    return (call(nvml.MEMORY_V2, gpu).reserved,)


def _performance_state(gpu: Handle) -> Values:
    state = call("nvmlDeviceGetPerformanceState", gpu)
    if state > _SLOWEST_STATE:
        raise NvmlError("The driver does not know the performance state.")
    return (state,)


def _process_count(device: Handle) -> Values:
    return (len(call("nvmlDeviceGetComputeRunningProcesses", device)),)


def _retired_pages(gpu: Handle) -> Values:
    single, double, pending = nvml.fields(
        gpu,
        "NVML_FI_DEV_RETIRED_SBE",
        "NVML_FI_DEV_RETIRED_DBE",
        "NVML_FI_DEV_RETIRED_PENDING",
    )
    return single.value + double.value, pending.value


def _remapped_rows(gpu: Handle) -> Values:
    corrected, uncorrected, pending, failed = call("nvmlDeviceGetRemappedRows", gpu)
    return corrected, uncorrected, int(bool(pending)), int(bool(failed))


def _ecc(kind: int, counter: int) -> Way:
    return _one("nvmlDeviceGetTotalEccErrors", kind, counter)


def memory_questions() -> list[Question]:
    """What a GPU and a MIG instance are asked alike."""
    return [
        Question(
            ("memory_used_bytes", "memory_free_bytes"),
            _memory(nvml.MEMORY_V2),
            # before driver 510: what the driver reserved counts as used
            _memory("nvmlDeviceGetMemoryInfo"),
            not_supported=_NO_MEMORY,
        ),
        Question(
            ("memory_reserved_bytes",),
            _reserved,
            period_ns=SLOW_PERIOD_NS,
            not_supported=_NO_MEMORY,
        ),
        Question(("process_count",), _process_count, period_ns=SLOW_PERIOD_NS),
    ]


def gpu_sheet(window: GpmWindow, links: Links | None = None) -> Sheet:
    """Everything that is asked of a whole GPU, in the order of asking.

    Args:
        window: of GPM.
        links: reads PCIe and NVLink where GPM does not; the window then has the
            names of the chip alone.
    """
    return Sheet(
        GPU,
        [
            # first, because a window is as regular as the moments of its samples
            Question(window.names, window.read),
            *_fast(),
            *_slow(),
            *_rare(),
            *(_links(links) if links else ()),
        ],
    )


def mig_question(window: GpmWindow, gpu: Callable[[], Handle]) -> Question:
    """What GPM says of a MIG instance, which is asked of its GPU."""
    return Question(window.names, lambda _instance: window.read(gpu()))


def _fast() -> list[Question]:
    return [
        Question(("gpu_utilization_ratio", "memory_utilization_ratio"), _utilization),
        *memory_questions(),
        Question(("power_watts",), _one("nvmlDeviceGetPowerUsage", scale=1000)),
        Question(
            ("temperature_celsius",),
            _one("nvmlDeviceGetTemperature", _TEMPERATURE_GPU),
            _one("nvmlDeviceGetTemperatureV", _TEMPERATURE_GPU),
        ),
        Question(("sm_clock_mhz",), _one("nvmlDeviceGetClockInfo", _CLOCK_SM)),
        Question(("memory_clock_mhz",), _one("nvmlDeviceGetClockInfo", _CLOCK_MEMORY)),
        # named "throttle reasons" before driver 535
        Question(
            ("clocks_event_reasons",),
            _one("nvmlDeviceGetCurrentClocksEventReasons"),
            _one("nvmlDeviceGetCurrentClocksThrottleReasons"),
        ),
        Question(("performance_state",), _performance_state),
    ]


def _slow() -> list[Question]:
    ways: dict[str, Way] = {
        "energy_joules": _one("nvmlDeviceGetTotalEnergyConsumption", scale=1000),
        "memory_temperature_celsius": _fields("NVML_FI_DEV_MEMORY_TEMP"),
        "encoder_utilization_ratio": _share("nvmlDeviceGetEncoderUtilization"),
        "decoder_utilization_ratio": _share("nvmlDeviceGetDecoderUtilization"),
        "jpeg_utilization_ratio": _share("nvmlDeviceGetJpgUtilization"),
        "optical_flow_utilization_ratio": _share("nvmlDeviceGetOfaUtilization"),
        "pcie_link_generation": _one("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_link_width": _one("nvmlDeviceGetCurrPcieLinkWidth"),
    }
    return [
        Question((name,), way, period_ns=SLOW_PERIOD_NS) for name, way in ways.items()
    ]


def _rare() -> list[Question]:
    ecc = {
        "ecc_corrected_count": _ecc(_CORRECTED, _VOLATILE),
        "ecc_uncorrected_count": _ecc(_UNCORRECTED, _VOLATILE),
        "ecc_corrected_lifetime_count": _ecc(_CORRECTED, _AGGREGATE),
        "ecc_uncorrected_lifetime_count": _ecc(_UNCORRECTED, _AGGREGATE),
    }
    return [
        Question(
            ("power_limit_watts",),
            _one("nvmlDeviceGetEnforcedPowerLimit", scale=1000),
            period_ns=RARE_PERIOD_NS,
        ),
        *(
            Question((name,), way, period_ns=RARE_PERIOD_NS, not_supported=_NO_ECC)
            for name, way in ecc.items()
        ),
        Question(
            (
                "remapped_rows_corrected_count",
                "remapped_rows_uncorrected_count",
                "remapped_rows_pending",
                "remapped_rows_failed",
            ),
            _remapped_rows,
            period_ns=RARE_PERIOD_NS,
            not_supported="This GPU has no spare rows; older ones retire pages.",
        ),
        Question(
            ("retired_pages_count", "retired_pages_pending"),
            _retired_pages,
            period_ns=RARE_PERIOD_NS,
            not_supported="This GPU retires no pages; newer ones remap rows.",
        ),
    ]


def _links(links: Links) -> list[Question]:
    return [
        Question(
            ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"),
            links.nvlink,
            period_ns=SLOW_PERIOD_NS,
        ),
        # last: it blocks for 20 ms in each direction
        Question(
            ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"),
            links.pcie,
            period_ns=SLOW_PERIOD_NS,
        ),
    ]
