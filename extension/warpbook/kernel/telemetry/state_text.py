"""The state of all devices, for a person to read at a glance: as text, and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby

from msgspec.structs import replace

from warpbook.kernel.telemetry.holder_text import holder_lines, indented
from warpbook.protocol import StateNow
from warpbook_monitors import units
from warpbook_monitors.frames import Absence, Device, Reading
from warpbook_monitors.html_table import TABLE_STYLE, table_html
from warpbook_monitors.labels import device_label
from warpbook_monitors.metrics import UTILIZATION_NOTE
from warpbook_monitors.plain_text import aligned, joined, printable

#: Columns of the table: with them it has 60 letters, which half a screen shows.
_COLUMNS = {
    "sm_active_ratio": "SM",
    "tensor_active_ratio": "tensor",
    "dram_active_ratio": "DRAM",
    "gpu_utilization_ratio": "util",
    "memory_used_bytes": "memory",
    "power_watts": "power",
    "temperature_celsius": "temp",
}
#: What stands in a cell without a figure; the reason follows below the table.
_NO_FIGURE = "—"


_CELL_STYLE = (
    "font-size: 12px; padding: 1px 0 1px 8px; text-align: right; white-space: nowrap"
)
#: sizes below a heading stay in their column
_LINE_STYLE = "white-space: pre-wrap"
_HOLDER_STYLE = f"{_LINE_STYLE}; font-family: monospace"


@dataclass(frozen=True)
class _Table:
    """Rows of one length; the first is the header."""

    rows: list[tuple[str, ...]]


#: a line of text, or the table
_Part = str | _Table


def state_text(state: StateNow, source: str) -> str:
    """Write a table of the GPUs, what is missing and why, and who read it."""
    lines: list[str] = []
    for part in (*_parts(state), "", source):
        lines += aligned(part.rows) if isinstance(part, _Table) else [part]
    return joined(lines)


def state_html(state: StateNow, source: str) -> str:
    """Write the same as HTML: a line is as wide as the page, and breaks at words."""
    written = []
    for kind, parts in groupby((*_parts(state), "", source), _kind):
        if kind == "table":
            written += [_table_html(part) for part in parts if isinstance(part, _Table)]
        elif kind:
            lines = "<br>".join(escape(printable(str(part))) for part in parts)
            style = _HOLDER_STYLE if kind == "holders" else _LINE_STYLE
            written.append(f'<div style="{style}; margin: 0.3em 0">{lines}</div>')
    style = f"<style>{TABLE_STYLE}</style>"
    return f'<div class="warpbook-gpu">{style}{"".join(written)}</div>'


def _kind(part: _Part) -> str:
    if isinstance(part, _Table):
        return "table"
    return "" if not part else "holders" if part.startswith("  ") else "lines"


def _table_html(table: _Table) -> str:
    header, *rows = table.rows
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return table_html(
        f"<table><thead><tr>{_cells('th', header)}</tr></thead>{body}</table>"
    )


def _cells(tag: str, row: tuple[str, ...]) -> str:
    return "".join(
        f'<{tag} style="{_CELL_STYLE}">{escape(printable(cell))}</{tag}>'
        for cell in row
    )


def _parts(state: StateNow) -> Iterator[_Part]:
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
        if device.kind in ("gpu", "mig")
    ]
    if gpus:
        devices = [device for device, _ in gpus]
        short = {device.id: device_label(device, state.devices) for device in devices}
        yield from _legend(devices, short)
        gpus = [
            (replace(device, name=short[device.id]), reading)
            for device, reading in gpus
        ]
        yield ""
        header = ("", *_COLUMNS.values())
        yield _Table([header, *(_row(*gpu) for gpu in gpus)])
    else:
        yield "No GPU."
    lines = [line for device, _ in gpus for line in _told(state, device)]
    if lines:
        yield ""
    yield from lines
    for device, _ in gpus:
        yield from _holders(state, device)
    notes = list(_notes(gpus))
    notes += _absences(state.absences, "\n".join(notes))
    if notes:
        yield ""
    yield from notes
    yield from _host(state, readings)
    if gpus:
        yield ""
        yield UTILIZATION_NOTE


def _row(device: Device, reading: Reading | None) -> tuple[str, ...]:
    return (device.name, *(_cell(device, reading, name) for name in _COLUMNS))


def _legend(devices: Sequence[Device], short: dict[str, str]) -> Iterator[str]:
    """Say once what each is: names are long, and often all the same."""
    alike: dict[str, list[str]] = {}
    for device in devices:
        total = device.facts.get("memory_total_bytes")
        size = f", {units.size(total)}" if isinstance(total, (int, float)) else ""
        replay = " (REPLAY)" if device.origin == "replay" else ""
        alike.setdefault(device.name + size + replay, []).append(short[device.id])
    for name, those in alike.items():
        yield f"{_enumerated(those)}: {name}"


def _enumerated(names: Sequence[str]) -> str:
    """Write names of devices as "GPU 0, 1, MIG 2:3, 2:4"."""
    said: list[str] = []
    before = ""
    for name in names:
        kind = name.partition(" ")[0]
        said.append(name.removeprefix(f"{kind} ") if kind == before else name)
        before = kind
    return ", ".join(said)


def _told(state: StateNow, device: Device) -> Iterator[str]:
    """What the readings mean: the verdict, and memory that grows."""
    if device.id in state.verdicts:
        verdict = state.verdicts[device.id]
        words = "changing; before that: " if verdict.is_changing else ""
        yield f"{device.name}: {words}{verdict.sentence}"
    outlook = state.outlook.get(device.id)
    if outlook is not None and (outlook.slope_bytes_per_s or 0) > 0:
        yield f"{device.name}: {outlook.sentence}"


def _holders(state: StateNow, device: Device) -> Iterator[str]:
    holders = state.holders.get(device.id)
    if holders is None or device.origin == "replay":
        return
    rows = list(holder_lines(holders))
    if rows or holders.notes:
        yield ""
        yield f"Memory of {device.name}:"
    yield from indented(rows)
    for note in holders.notes:
        yield f"  {note}"


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
        return units.size(value)
    if name == "power_watts":
        return f"{value:.0f} W"
    if name == "temperature_celsius":
        return f"{value:.0f} °C"
    return units.share(value)


def _notes(gpus: Sequence[tuple[Device, Reading | None]]) -> Iterator[str]:
    """Say why figures are missing, each reason once."""
    #: by reason and what it hides
    devices: dict[tuple[str, str], list[str]] = {}
    for device, reading in gpus:
        labels: dict[str, list[str]] = {}
        for label, why in _missing(device, reading):
            labels.setdefault(why, []).append(label)
        for why, those in labels.items():
            hidden = f"{', '.join(those)} on " if all(those) else ""
            devices.setdefault((hidden, why), []).append(device.name)
    for (hidden, why), names in devices.items():
        yield f"{hidden}{_enumerated(names)}: {why}"


def _missing(device: Device, reading: Reading | None) -> Iterator[tuple[str, str]]:
    """Give the columns without a figure, and why; no column is all of them."""
    if reading is None:
        yield "", "not read yet."
        return
    if reading.state != "ok":
        yield "", f"{reading.state.replace('_', ' ')}. {reading.why}".rstrip()
        return
    described = {metric.name: metric for metric in device.metrics}
    for name, label in _COLUMNS.items():
        metric = described.get(name)
        if metric is None:
            yield label, "not read on this GPU."
        elif metric.state != "ok":
            yield label, f"{metric.state.replace('_', ' ')}. {metric.why}".rstrip()
        elif _value(device, reading, name) is None:
            yield label, "no reading just now."


def _absences(absences: Sequence[Absence], shown: str) -> Iterator[str]:
    """Say what is not there, unless its reason was told; each reason once."""
    whats: dict[str, list[str]] = {}
    for absence in absences:
        if absence.message not in shown:
            why = f"{absence.message} {absence.remedy}".rstrip()
            whats.setdefault(why, []).append(absence.what)
    for why, those in whats.items():
        yield f"{', '.join(those)}: {why}"


def _host(state: StateNow, readings: dict[int, Reading]) -> Iterator[str]:
    for position, device in enumerate(state.devices):
        if device.kind != "host":
            continue
        reading = readings.get(position)
        cpu = _value(device, reading, "cpu_ratio")
        said = "CPU not known" if cpu is None else f"CPU {units.share(cpu)}"
        memory = _value(device, reading, "memory_used_bytes")
        total = device.facts.get("memory_total_bytes")
        if memory is not None:
            whole = total if isinstance(total, (int, float)) else None
            said += f", memory {units.size(memory, whole)}"
        yield ""
        yield f"Host: {said}"
