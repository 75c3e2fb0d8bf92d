"""What every rule has: how long something must last, and where to look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from warpbook_monitors.alerts.situation import Situation
from warpbook_monitors.frames import Severity

Seconds = Annotated[float, Meta(ge=0, le=86_400)]


class Finding(NamedTuple):
    """What a rule sees of one thing in one second."""

    #: what it is about; one rule may find the same of many
    subject: str
    #: None: it can't be told, or lies between beginning and end; nothing changes
    holds: bool | None
    severity: Severity
    device: str | None
    title: str
    text: str
    kernel_id: str | None = None


def is_above(value: float | None, begin: float, end: float) -> bool | None:
    """Whether a value is too high; None if it is unknown, or between begin and end."""
    if value is None or end <= value < begin:
        return None
    return value >= begin


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be set of every rule."""

    enabled: bool = True
    #: how long it must hold before anybody is told
    for_s: Seconds = 5.0
    #: how long it must be over before the alert ends
    clear_s: Seconds = 15.0
    #: in the place of the rule's own judgement
    severity: Severity | None = None

    def look(self, now: Situation) -> Iterable[Finding]:
        """Give a finding for each thing there is; what is left out is over."""
        raise NotImplementedError
