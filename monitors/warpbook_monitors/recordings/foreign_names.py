"""Names in a recording that somebody else made: checked, or made fit to show.

What becomes an identifier must look like one. What is only shown becomes one line that
steers no terminal, and not a long one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from warpbook_monitors.frames import Device, Frame, Metric
from warpbook_monitors.plain_text import bounded

_METRIC = re.compile(r"[a-z0-9_]{1,64}")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,119}")
_FACT = re.compile(r"[A-Za-z0-9_]{1,64}")
_MOST_FACTS = 200
_MOST_LETTERS = 200


def check_names(device: Device) -> None:
    """Refuse a device whose id, metrics or facts have names that can't be ours.

    Raises:
        ValueError: with the name.
    """
    if not _DEVICE.fullmatch(device.id):
        raise ValueError(f"{bounded(device.id)!r} is not a device id.")
    for metric in device.metrics:
        if not _METRIC.fullmatch(metric.name):
            raise ValueError(f"{bounded(metric.name)!r} is not a metric name.")
    if len({metric.name for metric in device.metrics}) < len(device.metrics):
        raise ValueError(f"{device.id} has two metrics with the same name.")
    if len(device.facts) > _MOST_FACTS:
        raise ValueError(f"{device.id} has more than {_MOST_FACTS} facts.")
    for name in device.facts:
        if not _FACT.fullmatch(name):
            raise ValueError(f"{bounded(name)!r} is not a name of a fact.")


def plain_devices(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Make what is shown of devices fit to show."""
    return tuple(
        replace(
            device,
            name=_plain(device.name),
            metrics=tuple(map(_plain_metric, device.metrics)),
            facts={
                name: _plain(fact) if isinstance(fact, str) else fact
                for name, fact in device.facts.items()
            },
        )
        for device in devices
    )


def plain_frame(frame: Frame) -> Frame:
    """Make a frame's label, and why readings are missing, fit to show."""
    label = frame.label
    if label is not None and not _is_plain(label):
        frame = replace(frame, label=_plain(label))
    if all(_is_plain(reading.why) for reading in frame.readings):
        return frame
    readings = tuple(
        replace(reading, why=_plain(reading.why)) for reading in frame.readings
    )
    return replace(frame, readings=readings)


def _plain_metric(metric: Metric) -> Metric:
    return replace(metric, label=_plain(metric.label), why=_plain(metric.why))


def _is_plain(text: str) -> bool:
    return len(text) <= _MOST_LETTERS and text.isprintable()


def _plain(text: str) -> str:
    return text if _is_plain(text) else bounded(text, _MOST_LETTERS)
