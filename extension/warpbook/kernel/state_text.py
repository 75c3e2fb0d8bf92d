"""The state of all devices as text, for a person to read at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from warpbook.kernel.plain_text import aligned, joined
from warpbook.protocol import StateNow
from warpbook_monitors import units
from warpbook_monitors.frames import Device, Reading
from warpbook_monitors.metrics import UTILIZATION_NOTE

#: Columns of the table; memory is written beside its total.
_COLUMNS = {
    "sm_active_ratio": "SM active",
    "tensor_active_ratio": "tensor",
    "dram_active_ratio": "DRAM",
    "gpu_utilization_ratio": "NVML util",
    "memory_used_bytes": "memory",
    "power_watts": "power",
    "temperature_celsius": "temp",
}
#: What stands in a cell without a figure; the reason follows below the table.
_NO_FIGURE = "—"


def state_text(state: StateNow) -> str:
    """Write a table of the GPUs, then what is missing and why."""
    return joined(_lines(state))


def _lines(state: StateNow) -> Iterator[str]:
    if state.replay is not None:
        made = datetime.fromtimestamp(state.replay.recorded_ms / 1e3)
        yield (
            f"REPLAY of {state.replay.name}, recorded {made:%Y-%m-%d}: "
            "not this machine's GPU."
        )
    readings: dict[int, Reading] = {}
    if state.frame is not None:
        readings = {reading.device: reading for reading in state.frame.readings}
    gpus = [
        (device, readings.get(position))
        for position, device in enumerate(state.devices)
        if device.kind == "gpu"
    ]
    if gpus:
        header = ("GPU", *_COLUMNS.values())
        yield from aligned([header, *(_row(*gpu) for gpu in gpus)])
    else:
        yield "No GPU."
    judged = [
        f"{_label(device)}: {state.verdicts[device.id].sentence}"
        for device, _ in gpus
        if device.id in state.verdicts
    ]
    if judged:
        yield ""
    yield from judged
    notes = [note for gpu in gpus for note in _notes(*gpu)]
    notes += [
        f"{absence.what}: {absence.message} {absence.remedy}".rstrip()
        for absence in state.absences
    ]
    if notes:
        yield ""
    yield from dict.fromkeys(notes)
    yield from _host(state, readings)
    if gpus:
        yield ""
        yield UTILIZATION_NOTE


def _row(device: Device, reading: Reading | None) -> tuple[str, ...]:
    return (
        _label(device),
        *(_cell(device, reading, name) for name in _COLUMNS),
    )


def _label(device: Device) -> str:
    number = "" if device.index is None else f"{device.index} "
    replay = " (REPLAY)" if device.origin == "replay" else ""
    return f"{number}{device.name}{replay}"


def _value(device: Device, reading: Reading | None, name: str) -> float | None:
    if reading is None or reading.state != "ok":
        return None
    for metric, value in zip(device.metrics, reading.values, strict=False):
        if metric.name == name:
            return value
    return None


def _cell(device: Device, reading: Reading | None, name: str) -> str:
    value = _value(device, reading, name)
    if value is None:
        return _NO_FIGURE
    if name == "memory_used_bytes":
        total = device.facts.get("memory_total_bytes")
        of = f" of {units.size(total)}" if isinstance(total, (int, float)) else ""
        return units.size(value) + of
    if name == "power_watts":
        return f"{value:.0f} W"
    if name == "temperature_celsius":
        return f"{value:.0f} °C"
    return units.share(value)


def _notes(device: Device, reading: Reading | None) -> Iterator[str]:
    """Say why figures are missing."""
    if reading is None:
        yield f"{_label(device)}: not read yet."
        return
    if reading.state != "ok":
        state = reading.state.replace("_", " ")
        yield f"{_label(device)}: {state}. {reading.why}".rstrip()
        return
    described = {metric.name: metric for metric in device.metrics}
    for name, label in _COLUMNS.items():
        metric = described.get(name)
        if metric is None:
            yield f"{_label(device)}, {label}: not read on this GPU."
        elif metric.state != "ok":
            state = metric.state.replace("_", " ")
            yield f"{_label(device)}, {label}: {state}. {metric.why}".rstrip()
        elif _value(device, reading, name) is None:
            yield f"{_label(device)}, {label}: no reading just now."


def _host(state: StateNow, readings: dict[int, Reading]) -> Iterator[str]:
    for position, device in enumerate(state.devices):
        if device.kind != "host":
            continue
        reading = readings.get(position)
        cpu = _value(device, reading, "cpu_ratio")
        said = "CPU not known" if cpu is None else f"CPU {units.share(cpu)}"
        memory = _cell(device, reading, "memory_used_bytes")
        if memory != _NO_FIGURE:
            said += f", memory {memory}"
        yield ""
        yield f"Host: {said}"
