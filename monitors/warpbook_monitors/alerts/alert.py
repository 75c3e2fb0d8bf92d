"""What a person is told: something holds, or held until lately."""

from __future__ import annotations

from msgspec import Struct

from warpbook_monitors.frames import Severity


class Alert(Struct, frozen=True):
    """A rule that holds, or held until lately."""

    #: unique; the same from the beginning of an alert to its end
    id: str
    rule: str
    severity: Severity
    #: id of the device, where it is about one
    device: str | None
    title: str
    #: what happened and what to do
    text: str
    since_ms: float
    #: None while it holds
    until_ms: float | None = None
    #: the kernel that it is about, so that it can be restarted
    kernel_id: str | None = None
    #: whether the device is a recording's
    is_replay: bool = False
