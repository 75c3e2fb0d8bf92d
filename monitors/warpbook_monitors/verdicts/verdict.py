"""What held a GPU back over a few seconds, from counters alone, with the rule shown.

The limits are shares of what the chip could do. They were set with the labelled
recording that ships with warpbook, in which each kind of work occurs. Counters of a
whole device can't name a line of code; a profile of a cell can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from warpbook_monitors.frames import Device
from warpbook_monitors.verdict_kinds import Kind, Unit
from warpbook_monitors.verdicts.link_speeds import nvlink_bytes_per_s, pcie_bytes_per_s

#: fewer readings are no window
MIN_READINGS = 5
#: below it a share is noise or housekeeping
QUIET_RATIO = 0.02
#: a unit that is active for this share of the time is what the work waits for
BOUND_RATIO = 0.6
#: a link that is full to this share: protocol overhead keeps it from 1
LINK_BOUND_RATIO = 0.4
#: a link that is full to this share is what a chip waits for that does next to nothing
SLOW_COPY_RATIO = 0.05
IDLE_COPYING_RATIO = 0.05
#: a chip with fewer active multiprocessors than this has time to wait
WAITING_RATIO = 0.3
#: NVML counts a moment with any kernel; so often there always was one
ALWAYS_RATIO = 0.9


class Verdict(Struct, frozen=True):
    """One window of one GPU, judged."""

    kind: Kind
    #: for a person: what it is, and what to try
    sentence: str
    #: the comparison that decided, with its figures
    rule: str
    #: the seconds that it covers; None for the verdict of a given span
    window_s: float | None = None
    #: since when this kind and unit are seen; None where that is not known
    since_ms: float | None = None
    #: whether another kind of work has begun since, too short to be judged
    is_changing: bool = False
    #: of a compute-bound GPU
    unit: Unit | None = None


def judge(device: Device, readings: Sequence[Sequence[float | None]]) -> Verdict:
    """Judge a window by the means of its readings.

    Args:
        device: whose metrics the readings follow.
        readings: rows of values, None where there is none.
    """
    if len(readings) < MIN_READINGS and device.facts.get("mig_mode") != "enabled":
        return Verdict("unknown", "Too few readings to judge.", "")
    return judge_means(device, _means(device, readings))


def judge_means(device: Device, means: Mapping[str, float]) -> Verdict:
    """Judge a time by the mean of each metric; those that were not read are absent."""
    if device.facts.get("mig_mode") == "enabled":
        return Verdict("unknown", "MIG is on: see the instances of this GPU.", "")
    if device.kind == "mig":
        return _instance(means)
    utilization = means.get("gpu_utilization_ratio")
    if utilization is None:
        return Verdict("unknown", "Too few readings to judge.", "")
    sm_active = means.get("sm_active_ratio")
    if sm_active is None:
        return _without_gpm(utilization)
    for verdict in (
        _communication(device, means, sm_active),
        _unit(means),
        _copy(device, means, sm_active),
    ):
        if verdict is not None:
            return verdict
    if utilization < QUIET_RATIO and sm_active < QUIET_RATIO:
        return Verdict(
            "idle",
            "Nothing runs on this GPU.",
            f"NVML utilization {_percent(utilization)} and SM active "
            f"{_percent(sm_active)}, both below {_percent(QUIET_RATIO)}",
        )
    return _little_work(utilization, sm_active, means)


def _without_gpm(utilization: float) -> Verdict:
    if utilization < QUIET_RATIO:
        return Verdict(
            "idle",
            "Nothing runs on this GPU.",
            f"NVML utilization {_percent(utilization)}, below {_percent(QUIET_RATIO)}",
        )
    return Verdict(
        "unknown",
        "Something runs, but this GPU does not report which units are busy: it has no "
        "GPM. Profile a cell.",
        f"NVML utilization {_percent(utilization)}; no SM active, tensor or DRAM",
    )


def _instance(means: Mapping[str, float]) -> Verdict:
    """A MIG instance: NVML gives it neither a utilization nor links."""
    sm_active = means.get("sm_active_ratio")
    if sm_active is None:
        return Verdict(
            "unknown",
            "NVML does not report this MIG instance's work: that needs GPM, which "
            "Hopper and newer GPUs have. Profile a cell.",
            "no SM active, tensor or DRAM",
        )
    bound = _unit(means)
    if bound is not None:
        return bound
    figures = f"SM active {_percent(sm_active)}"
    if sm_active < QUIET_RATIO:
        return Verdict(
            "idle",
            "Almost nothing runs on this MIG instance.",
            f"{figures}, below {_percent(QUIET_RATIO)}",
        )
    return Verdict(
        "unknown",
        "The GPU is busy and nothing is saturated. For a MIG instance, NVML does not "
        "report whether it copies or waits. Profile a cell.",
        f"{figures}, no unit above {_percent(BOUND_RATIO)}",
    )


def _communication(
    device: Device, means: Mapping[str, float], sm_active: float
) -> Verdict | None:
    most = nvlink_bytes_per_s(device)
    if most is None:
        return None
    rate = max(
        means.get("nvlink_rx_bytes_per_s", 0.0), means.get("nvlink_tx_bytes_per_s", 0.0)
    )
    share = rate / most
    if share < LINK_BOUND_RATIO or sm_active > BOUND_RATIO:
        return None
    return Verdict(
        "communication-bound",
        "The GPUs spend the time exchanging data. Overlap this with computing, send "
        "less (bf16 gradients, larger buckets), or use fewer GPUs.",
        f"NVLink at {_percent(share)} of {device.facts['nvlink_count']} links, above "
        f"{_percent(LINK_BOUND_RATIO)}, with SM active {_percent(sm_active)}",
    )


def _unit(means: Mapping[str, float]) -> Verdict | None:
    """The busiest unit, if it is busy enough to be what the work waits for."""
    units: dict[str, tuple[Kind, Unit | None, str, str]] = {
        "tensor_active_ratio": (
            "compute-bound",
            "tensor cores",
            "Tensor",
            "The tensor cores are the limit: matrix work should look like this. Only "
            "a smaller type (fp8) or less work is faster.",
        ),
        "dram_active_ratio": (
            "memory-bound",
            None,
            "DRAM",
            "Device memory is the limit. Fuse elementwise work (torch.compile), use a "
            "smaller type, or make fewer passes over the data.",
        ),
        "fp32_active_ratio": (
            "compute-bound",
            "CUDA cores",
            "FP32",
            "The FP32 units are the limit. Matrix work can use the tensor cores: "
            "torch.set_float32_matmul_precision('high'), or bf16 by autocast.",
        ),
        "fp64_active_ratio": (
            "compute-bound",
            "CUDA cores",
            "FP64",
            "The FP64 units are the limit. Use FP32 where the precision allows.",
        ),
        "integer_active_ratio": (
            "compute-bound",
            "CUDA cores",
            "Integer",
            "The integer units are the limit: index arithmetic or integer work.",
        ),
        "fp16_active_ratio": (
            "compute-bound",
            "CUDA cores",
            "FP16",
            "The FP16 units are the limit. Matrix work can use the tensor cores.",
        ),
    }
    name = max(units, key=lambda metric: means.get(metric, 0.0))
    active = means.get(name, 0.0)
    if active < BOUND_RATIO:
        return None
    kind, unit, label, sentence = units[name]
    rule = f"{label} active {_percent(active)}, above {_percent(BOUND_RATIO)}"
    return Verdict(kind, sentence, rule, unit=unit)


def _copy(
    device: Device, means: Mapping[str, float], sm_active: float
) -> Verdict | None:
    most = pcie_bytes_per_s(device)
    if most is None or sm_active > WAITING_RATIO:
        return None
    into = means.get("pcie_rx_bytes_per_s", 0.0)
    out = means.get("pcie_tx_bytes_per_s", 0.0)
    share = max(into, out) / most
    is_slow = share < LINK_BOUND_RATIO
    if is_slow and (share < SLOW_COPY_RATIO or sm_active > IDLE_COPYING_RATIO):
        return None
    direction = "to the GPU" if into >= out else "to the host"
    what = "Slow copies" if is_slow else "Copies"
    remedy = (
        "This rate is typical of pageable memory: pin it (pin_memory=True), and copy "
        "with non_blocking=True"
        if is_slow
        else (
            "Overlap them with computing (pinned memory, non_blocking, a separate "
            "stream), or copy less"
        )
    )
    least = SLOW_COPY_RATIO if is_slow else LINK_BOUND_RATIO
    return Verdict(
        "transfer-bound",
        f"{what} {direction} over PCIe take the time. {remedy}.",
        f"PCIe at {_percent(share)} of generation "
        f"{device.facts['pcie_generation']} x{device.facts['pcie_width']}, above "
        f"{_percent(least)}, with SM active {_percent(sm_active)}",
    )


def _little_work(
    utilization: float, sm_active: float, means: Mapping[str, float]
) -> Verdict:
    figures = (
        f"NVML utilization {_percent(utilization)}, SM active {_percent(sm_active)}"
    )
    if sm_active < WAITING_RATIO and utilization < ALWAYS_RATIO:
        return Verdict(
            "host-bound",
            "The GPU waits for the host: kernels are launched too rarely or are too "
            "small. Batch more work, use CUDA graphs or torch.compile, feed data "
            "faster.",
            f"{figures}: below {_percent(ALWAYS_RATIO)} and {_percent(WAITING_RATIO)}",
        )
    if sm_active < WAITING_RATIO:
        return Verdict(
            "few-multiprocessors",
            "A kernel always runs, but on a small part of the chip: faster launches "
            "gain nothing. Give each kernel more work (larger batches, fused "
            "operations), or check whether it waits for another GPU.",
            f"{figures}: at least {_percent(ALWAYS_RATIO)} of the time a kernel, with "
            f"less than {_percent(WAITING_RATIO)} of the chip",
        )
    names = {
        "tensor_active_ratio": "tensor",
        "dram_active_ratio": "DRAM",
        "fp32_active_ratio": "FP32",
    }
    highest = max(names, key=lambda name: means.get(name, 0.0))
    return Verdict(
        "mixed",
        "The GPU is busy and nothing is saturated. Profile a cell to see why.",
        f"{figures}; the busiest unit is {names[highest]} with "
        f"{_percent(means.get(highest, 0.0))}, below {_percent(BOUND_RATIO)}",
    )


def _means(
    device: Device, readings: Sequence[Sequence[float | None]]
) -> dict[str, float]:
    means = {}
    columns = zip(*readings, strict=True)
    for metric, column in zip(device.metrics, columns, strict=False):
        values = [value for value in column if value is not None]
        if values and metric.state == "ok":
            means[metric.name] = sum(values) / len(values)
    return means


def _percent(ratio: float) -> str:
    # three figures of next to nothing would only look exact
    if 0 < ratio < 0.001:
        return "<0.1 %"
    return f"{100 * ratio:.1f} %" if 0 < ratio < 0.01 else f"{100 * ratio:.0f} %"
