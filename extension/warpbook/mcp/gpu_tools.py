"""`gpus_now` and `cells`: what the GPUs do, and what cells cost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Annotated

from msgspec import Meta

from warpbook.mcp.answer import Answer
from warpbook.mcp.lab_policy import allowed_records
from warpbook.mcp.marked import Own
from warpbook.mcp.source import Source
from warpbook.mcp.tool import Arguments, Tool
from warpbook.protocol import Device, DeviceHolders, Holder, KeptRecord, StateNow
from warpbook_monitors import metrics

_KNOWN = frozenset((*metrics.GPU, *metrics.MIG))
_REPLAY = (
    "The figures are a REPLAY of a recording: this machine has no GPU that can be read."
)


class GpusNow(Arguments, frozen=True, kw_only=True):
    """Nothing else is asked."""


class Cells(Arguments, frozen=True, kw_only=True):
    """Which cells."""

    text: Annotated[
        str,
        Meta(max_length=200, description="Words of the title, notebook or sentence."),
    ] = ""
    notebook: Annotated[
        str, Meta(max_length=1000, description="Path of one notebook.")
    ] = ""
    most: Annotated[int, Meta(ge=1, le=200, description="Newest at most.")] = 50


async def _gpus_now(source: Source, _: GpusNow) -> Answer:
    state = await source.state()
    unknown = [f"{absence.what}: {absence.message}" for absence in state.absences]
    gpus = [
        _gpu(state, at, device)
        for at, device in enumerate(state.devices)
        if device.kind in ("gpu", "mig")
    ]
    head: dict[str, object] = {"is_replay": state.replay is not None}
    if state.replay is not None:
        head["replay"] = {"of": state.replay.name, "means": Own(_REPLAY)}
    if state.frame is not None:
        head["read_at"] = utc(state.frame.time_ms)
    if not gpus:
        unknown.append("No GPU is read here.")
    return Answer(head, gpus, unknown, {"in_jupyterlab": Own("warpbook's dashboard")})


def _gpu(state: StateNow, at: int, device: Device) -> dict[str, object]:
    gpu: dict[str, object] = {"id": device.id, "name": device.name}
    if device.index is not None:
        gpu["index"] = device.index
    verdict = state.verdicts.get(device.id)
    if verdict is not None:
        gpu["verdict"] = {
            "kind": Own(verdict.kind),
            "sentence": Own(verdict.sentence),
            "rule": verdict.rule,
            "over_s": verdict.window_s,
        }
    readings = () if state.frame is None else state.frame.readings
    reading = next((one for one in readings if one.device == at), None)
    unknown: list[object] = []
    if reading is None:
        unknown.append(Own("It was not read yet: ask again in a second."))
    elif reading.state != "ok":
        unknown.append({"state": Own(reading.state), "why": reading.why})
    else:
        gpu["figures"] = {
            metric.name: value
            for metric, value in zip(device.metrics, reading.values, strict=True)
            if value is not None and metric.name in _KNOWN
        }
    unknown += [
        {"metric": metric.name, "state": Own(metric.state), "why": metric.why}
        for metric in device.metrics
        if metric.state != "ok"
    ]
    if "memory_total_bytes" in device.facts:
        gpu["memory_total_bytes"] = device.facts["memory_total_bytes"]
    held = state.holders.get(device.id)
    if held is not None:
        gpu["memory_held_by"] = _holders(held)
        unknown += held.notes
    if unknown:
        gpu["unknown"] = unknown
    return gpu


def _holders(held: DeviceHolders) -> dict[str, object]:
    return {
        "holders": [_holder(holder) for holder in held.holders],
        "unattributed_bytes": held.unattributed_bytes,
    }


def _holder(holder: Holder) -> dict[str, object]:
    if holder.kind == "other_users":
        # whatever the server shows to people: names of others are not an assistant's
        return {"who": Own("another account"), "used_bytes": holder.used_bytes}
    facts = {
        "who": Own(holder.kind),
        "name": holder.name,
        "used_bytes": holder.used_bytes,
        "pids": list(holder.pids),
        "kernel_id": holder.kernel_id,
        "kernel_state": holder.execution_state,
        "idle_s": holder.idle_s,
        "allocated_bytes": holder.allocated_bytes,
        "reserved_bytes": holder.reserved_bytes,
    }
    return {name: value for name, value in facts.items() if value is not None}


async def _cells(source: Source, asked: Cells) -> Answer:
    found, why_more = await source.records(
        asked.text, asked.notebook or None, asked.most
    )
    found, left_out = await allowed_records(found)
    unknown = [Own(words) for words in (why_more, left_out) if words]
    head = {
        "order": Own("newest first"),
        "kinds": Own(
            "receipt: what a cell cost, without a trace; report: of a profiled cell, "
            "ask report with its id; cell: a cell that a page saw"
        ),
    }
    rows = [dict(_cell(record)) for record in found]
    see = {"in_jupyterlab": Own("warpbook's dashboard, search by title or notebook")}
    return Answer(head, rows, unknown, see)


def _cell(record: KeptRecord) -> Iterator[tuple[str, object]]:
    yield "id", record.id
    yield "kind", Own(record.kind)
    yield "title", record.title
    if record.notebook is not None:
        yield "notebook", record.notebook
    yield "began", utc(record.started_ms)
    if record.ended_ms is not None:
        yield "took_ms", round(record.ended_ms - record.started_ms, 3)
    yield "status", record.status
    if record.verdict is not None:
        yield "verdict", record.verdict
    if record.sentence:
        yield "sentence", record.sentence
    if record.is_replay:
        yield "is_replay", True


def utc(time_ms: float) -> Own:
    """Write a time, Unix ms, as ISO 8601 in UTC."""
    at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return Own(at.isoformat(timespec="milliseconds"))


GPU_TOOLS = (
    Tool(
        "gpus_now",
        "What each GPU does now, what holds it back, and who holds its memory. It "
        "answers also while a cell blocks the kernel.",
        GpusNow,
        _gpus_now,
    ),
    Tool(
        "cells",
        "The newest cells with what they cost (receipts), and profiled ones (reports) "
        "with their ids and verdicts.",
        Cells,
        _cells,
    ),
)
