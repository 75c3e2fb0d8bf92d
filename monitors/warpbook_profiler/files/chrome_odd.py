"""Pieces of a trace file with an invalid field: what is lost is that field.

This is the slow way, taken for a piece that the decoder refuses.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from warpbook_profiler.files.chrome_links import FLOWS
from warpbook_profiler.files.chrome_records import (
    Args,
    Event,
    Gpu,
    Head,
    OddPiece,
    category_of,
)

#: such a time is invalid, so that the event is left out and counted
NO_TIME = -1e300
_TIMES = ("ts", "dur")
#: an address, as HIP's profiler wrote for a stream
_ADDRESS = re.compile(rb'"0x([0-9a-fA-F]{1,15})"')
_T = TypeVar("_T", bound=Struct)
_Fields = dict[str, msgspec.Raw]


class _Kind(Struct):
    """Enough of an event to tell whether it is of use."""

    ph: str = ""
    cat: str = ""


def decode_leniently(text: bytes) -> OddPiece:
    """Decode a piece field by field; what is invalid is not known.

    Raises:
        msgspec.MsgspecError: it is no JSON, or no object with a list of events.
    """
    whole = msgspec.json.decode(text, type=_Fields)
    raw = whole.pop("traceEvents", None)
    listed = None
    if raw is not None:
        listed = msgspec.json.decode(raw, type=list[msgspec.Raw] | None)
    gpus: list[Gpu] = []
    head, odd = _filled(Head, whole)
    if "deviceProperties" in whole and not head.gpus:
        gpus, odd = _gpus(whole["deviceProperties"])
        odd += _filled(Head, {**whole, "deviceProperties": msgspec.Raw(b"[]")})[1]
    events = None
    if listed is not None:
        events = []
        for one in listed:
            event, wrong = _event(one)
            events.append(event)
            odd += wrong
    return OddPiece(
        **{name: getattr(head, name) for name in head.__struct_fields__}
        | {"gpus": head.gpus or tuple(gpus)},
        events=events,
        odd_fields=odd,
    )


def _gpus(text: msgspec.Raw) -> tuple[list[Gpu], int]:
    try:
        listed = msgspec.json.decode(text, type=list[_Fields])
    except msgspec.ValidationError:
        return [], 1
    filled = [_filled(Gpu, one) for one in listed]
    return [gpu for gpu, _ in filled], sum(odd for _, odd in filled)


def _event(text: msgspec.Raw) -> tuple[Event, int]:
    """Decode an event, and count the fields that it lost."""
    try:
        return _decoded(text, Event), 0
    except msgspec.ValidationError:
        pass
    try:
        fields = msgspec.json.decode(text, type=_Fields)
        kind = msgspec.json.decode(text, type=_Kind)
    except msgspec.ValidationError:
        return Event(), 1
    if kind.cat not in FLOWS and (
        kind.ph not in ("X", "M") or category_of(kind.cat) is None
    ):
        # of no use, whatever it says; the mark that ends a piece is one of these
        return Event(kind.ph), 0
    encoded = fields.pop("args", None)
    event, odd = _filled(Event, fields)
    if any(name in fields and not _is_time(fields[name]) for name in _TIMES):
        return Event(kind.ph, kind.cat, ts=NO_TIME), 0
    if encoded is not None:
        try:
            event.args, lost = _filled(Args, msgspec.json.decode(encoded, type=_Fields))
        except msgspec.ValidationError:
            lost = 1
        odd += lost
    return event, odd


def _is_time(text: msgspec.Raw) -> bool:
    try:
        _decoded(text, float)
    except msgspec.ValidationError:
        return False
    return True


def _filled(kind: type[_T], fields: _Fields) -> tuple[_T, int]:
    """Fill what fields can be; the others stay as if they were left out."""
    filled, odd = kind(), 0
    for field in msgspec.structs.fields(kind):
        text = fields.get(field.encode_name)
        if text is None:
            continue
        if field.type is msgspec.Raw:
            setattr(filled, field.name, text)
            continue
        try:
            setattr(filled, field.name, _decoded(text, field.type))
        except msgspec.ValidationError:
            address = _ADDRESS.fullmatch(bytes(text))
            if address and kind is Args:
                setattr(filled, field.name, int(address[1], 16))
            else:
                odd += 1
    return filled, odd


def _decoded(text: msgspec.Raw, kind: Any) -> Any:
    # not strict: older versions wrote some numbers as strings
    return msgspec.json.decode(text, type=kind, strict=False)
