"""What one subscription asked for: how often, and which devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from warpbook.protocol import PROTOCOL_VERSION, Device, Error, Frame, Subscribe

#: one frame in ten seconds is the slowest that still counts as live
MIN_RATE_HZ = 0.1

encode: Callable[[object], bytes] = msgspec.json.Encoder().encode


class BadSubscription(Exception):
    """A subscription that can't be served; the viewer is told why."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True)
class Selection:
    """A rate and a set of devices; equal selections share their bytes."""

    rate_hz: float
    #: positions in `Hello.devices`, ascending; None is all
    devices: tuple[int, ...] | None

    def encode(self, frame: Frame, whole: bytes) -> bytes:
        """Give the frame as these viewers want it; `whole` is all of it, encoded."""
        if self.devices is None:
            return whole
        readings = tuple(
            reading for reading in frame.readings if reading.device in self.devices
        )
        return encode(msgspec.structs.replace(frame, readings=readings))


class Pace:
    """Thins a stream of frames to a rate, by their numbers: clocks may be set."""

    def __init__(self, rate_hz: float, base_rate_hz: float) -> None:
        """Thin to `rate_hz` a stream that comes at `base_rate_hz`."""
        self._step = base_rate_hz / rate_hz
        self._due_seq = -math.inf

    def takes(self, seq: int) -> bool:
        """Whether the frame of this number is one of those wanted."""
        if seq < self._due_seq - 0.5:
            return False
        late = seq - self._due_seq > self._step
        self._due_seq = (seq if late else self._due_seq) + self._step
        return True


def select(
    subscribe: Subscribe, devices: Sequence[Device], base_rate_hz: float
) -> Selection:
    """Check a subscription and bound its rate.

    Raises:
        Refused: the protocol's version, the rate or a device is wrong.
    """
    if subscribe.protocol != PROTOCOL_VERSION:
        raise BadSubscription(
            Error(
                "protocol_version",
                f"This server speaks protocol {PROTOCOL_VERSION}, the page "
                f"{subscribe.protocol}: reload the page; if that does not help, "
                "install the same warpbook for the browser part and the server.",
            )
        )
    rate_hz = subscribe.rate_hz
    if not rate_hz > 0 or not math.isfinite(rate_hz):
        raise BadSubscription(
            Error(
                "rate",
                f"A rate of {rate_hz:g} frames per second can't be served; ask for "
                f"{MIN_RATE_HZ:g} to {base_rate_hz:g}.",
            )
        )
    if subscribe.since_ms is not None and not math.isfinite(subscribe.since_ms):
        raise BadSubscription(Error("since", "since_ms is not a time."))
    return Selection(
        min(max(rate_hz, MIN_RATE_HZ), base_rate_hz),
        _positions(subscribe.devices, devices),
    )


def _positions(
    ids: tuple[str, ...] | None, devices: Sequence[Device]
) -> tuple[int, ...] | None:
    if ids is None:
        return None
    known = {device.id: position for position, device in enumerate(devices)}
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise BadSubscription(
            Error(
                "devices",
                f"There is no device {unknown[0][:80]!r}; there are "
                f"{', '.join(known)}.",
            )
        )
    return tuple(sorted({known[device_id] for device_id in ids}))
