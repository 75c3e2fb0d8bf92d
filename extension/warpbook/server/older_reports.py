"""Cell reports as protocol 1 kept them: times as fractions of ms, labs by their ids."""

from __future__ import annotations

from typing import Any

import msgspec

from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook.reports.labs import LABS

#: parts whose times are durations; a report's own are moments, and stay in Unix ms
_PARTS = ("profile", "live", "difference")


def from_protocol_1(message: bytes) -> CellReport:
    """Read a report of protocol 1; what views show of it is to be computed again.

    Raises:
        msgspec.MsgspecError: it is none.
        UnicodeError: it is no text.
        TypeError: a time is no number.
        OverflowError: a time is beyond every number.
    """
    report = msgspec.json.decode(message, type=dict[str, Any])
    report |= {name: _in_ns(report.get(name)) for name in _PARTS}
    if report["difference"] is not None:
        report["difference"] |= {"tables": ()}
    report |= {"protocol": PROTOCOL_VERSION, "view": None}
    return msgspec.convert(report, CellReport)


def _in_ns(value: Any) -> Any:
    """Turn every `NAME_ms` within into `NAME_ns`, and a lab into what it teaches."""
    if isinstance(value, list):
        return [_in_ns(item) for item in value]
    if not isinstance(value, dict):
        return value
    return dict(_field_in_ns(name, item) for name, item in value.items())


def _field_in_ns(name: str, value: Any) -> tuple[str, Any]:
    if name == "lab":
        topics = (topic for topic, lab in LABS.items() if lab == value)
        return "topic", next(topics, None)
    if name.endswith("_ms"):
        return f"{name.removesuffix('_ms')}_ns", _rounded(value)
    return name, _in_ns(value)


def _rounded(time_ms: Any) -> Any:
    if isinstance(time_ms, list):
        return [_rounded(item) for item in time_ms]
    return None if time_ms is None else round(time_ms * 1e6)
