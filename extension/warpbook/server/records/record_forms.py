"""How reports, receipts, cells, alerts and post-mortems are listed in the archive."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from warpbook.protocol import (
    Alert,
    CellBand,
    CellReport,
    KeptRecord,
    PostMortem,
    Receipt,
    RecordKind,
)
from warpbook.server.stream.selection import encode
from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.recordings.recording import MAX_TIME_MS

#: of texts that come from kernels and pages
_MAX_NAME = 1000
_MAX_ID = 200
_MAX_SENTENCE = 600
_INTERRUPTED = "The server or the kernel ended while this cell ran."

decode_report = msgspec.json.Decoder(CellReport).decode
decode_receipt = msgspec.json.Decoder(Receipt).decode
decode_alert = msgspec.json.Decoder(Alert).decode
decode_band = msgspec.json.Decoder(CellBand).decode


def check_report(report: CellReport) -> None:
    """Refuse what the views could not draw, of a kernel as of a file from elsewhere.

    Raises:
        ValueError: with the reason.
    """
    # a clock that is set while a cell runs has it end before it starts
    for time_ms in (report.started_ms, report.ended_ms):
        if not 0 <= time_ms <= MAX_TIME_MS:
            raise ValueError("A time of the cell is no time.")
    names = len(report.profile.names)
    for lane in report.profile.lanes:
        if not len(lane.starts_ns) == len(lane.durations_ns) == len(lane.names):
            raise ValueError("A lane's columns differ in length.")
        if any(not 0 <= name < names for name in lane.names):
            raise ValueError("A lane names a missing event.")
    for curve in report.profile.memory_curves:
        columns = (curve.times_ns, curve.allocated_bytes, curve.reserved_bytes)
        if not len(columns[0]) == len(columns[1]) == len(columns[2]) > 0:
            raise ValueError("A memory curve's columns differ in length.")


def report_record(report: CellReport) -> KeptRecord:
    verdict = report.profile.verdict
    if report.live is not None and report.live.verdict is not None:
        verdict = report.live.verdict
    return KeptRecord(
        kind="report",
        id=report.id,
        started_ms=report.started_ms,
        ended_ms=None if report.status == "running" else report.ended_ms,
        notebook=_name(report.notebook),
        kernel_id=_id(report.kernel_id),
        cell_id=_id(report.cell_id),
        title=bounded(report.title, 200),
        verdict=None if verdict is None else verdict.kind,
        status=report.status,
        sentence="" if verdict is None else bounded(verdict.sentence, _MAX_SENTENCE),
    )


def receipt_record(receipt: Receipt, is_replay: bool) -> KeptRecord:
    """List a receipt by its line, and the verdict of the first GPU that has one."""
    cell = receipt.cell
    verdicts = (device.verdict for device in receipt.devices if device.verdict)
    verdict = next(verdicts, None)
    return KeptRecord(
        kind="receipt",
        id=cell.id,
        started_ms=cell.started_ms,
        ended_ms=cell.ended_ms,
        notebook=_name(cell.notebook),
        kernel_id=_id(cell.kernel_id),
        cell_id=_id(cell.cell_id),
        title=bounded(cell.title, 200),
        verdict=None if verdict is None else verdict.kind,
        status=cell.status,
        sentence=bounded(receipt.line, _MAX_SENTENCE),
        is_replay=is_replay,
    )


def band_record(band: CellBand) -> KeptRecord:
    """List a cell that a page saw."""
    return KeptRecord(
        kind="cell",
        id=band.id,
        started_ms=band.started_ms,
        ended_ms=band.ended_ms,
        notebook=_name(band.notebook),
        kernel_id=band.kernel_id,
        cell_id=band.cell_id,
        title=bounded(band.title, 200),
        verdict=None,
        status=band.status,
        sentence="",
    )


def alert_record(alert: Alert) -> KeptRecord:
    return KeptRecord(
        kind="alert",
        id=alert.id,
        started_ms=alert.since_ms,
        ended_ms=alert.until_ms,
        notebook=None,
        kernel_id=_id(alert.kernel_id),
        cell_id=None,
        title=alert.title,
        verdict=alert.severity,
        status="running" if alert.until_ms is None else "ok",
        sentence=f"Replay: {alert.text}" if alert.is_replay else alert.text,
        is_replay=alert.is_replay,
    )


def post_mortem_record(post_mortem: PostMortem) -> KeptRecord:
    """List what was found after a cell ran out of memory."""
    kernel = re.sub(r"[^A-Za-z0-9-]", "", post_mortem.kernel_id)[:64]
    return KeptRecord(
        kind="post_mortem",
        id=f"{post_mortem.time_ms:.3f}-{kernel}",
        started_ms=post_mortem.time_ms,
        ended_ms=post_mortem.time_ms,
        notebook=_name(post_mortem.notebook),
        kernel_id=_id(post_mortem.kernel_id),
        cell_id=_id(post_mortem.cell_id),
        title="Out of GPU memory",
        verdict=None,
        status="error",
        sentence=bounded(post_mortem.sentence, _MAX_SENTENCE),
    )


def ended_without_its_server(
    kind: RecordKind, message: bytes, last_ms: float
) -> tuple[KeptRecord, bytes] | None:
    """End what a server that is gone left open; None if it can't be read.

    Args:
        kind: of the record.
        message: as it was kept.
        last_ms: when this machine was last read before now; Unix ms.
    """
    try:
        if kind == "report":
            report = decode_report(message)
            report = replace(
                report, status="interrupted", notes=(*report.notes, _INTERRUPTED)
            )
            return report_record(report), encode(report)
        if kind == "cell":
            band = decode_band(message)
            band = replace(band, status="interrupted", ended_ms=last_ms)
            return band_record(band), encode(band)
        if kind == "alert":
            alert = replace(decode_alert(message), until_ms=last_ms)
            return alert_record(alert), encode(alert)
    except UNREADABLE:
        return None
    return None


def _name(text: str | None) -> str | None:
    return None if text is None else text[:_MAX_NAME]


def _id(text: str | None) -> str | None:
    return None if text is None else text[:_MAX_ID]
