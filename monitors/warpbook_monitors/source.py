"""The seam to the outside world: what can be read, and how it is read.

A `Source` finds devices; a `Probe` reads one of them. The sampler gives each
probe a thread of its own, so a probe may block: only its own device goes stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from warpbook_monitors.frames import Absence, Device, Event, Reading, Replay


class Probe(Protocol):
    """Reads one device; every call comes from the same thread."""

    @property
    def device(self) -> Device:
        """The description; it may change between two reads, never its id."""

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give one value per metric of `device`, None where there is none.

        Args:
            now_ns: the tick's `time.monotonic_ns()`. Costly values may be
                remembered from an earlier tick, by the period of their tier.

        Raises:
            NoReading: there is nothing to read now, with the state and the reason;
                the next tick asks again.
        """

    def rest(self) -> None:
        """Nobody watches for a while: forget what a window must not span."""


class EventFeed(Protocol):
    """Tells what devices tell by themselves."""

    def start(self, tell: Callable[[Event], None]) -> None:
        """Call `tell` with each event from now on, on a thread of the feed's own."""

    def stop(self) -> None:
        """Tell nothing more, until the next start."""


@dataclass(frozen=True)
class Discovery:
    """What a source found."""

    probes: Sequence[Probe]
    #: what a person may expect of this source and it can't give
    absences: tuple[Absence, ...] = ()
    #: the recording behind the probes, or None for a live source
    replay: Replay | None = None
    #: what a recording says the machine was doing, by `time.monotonic_ns()`
    label_at: Callable[[int], str | None] | None = None
    #: what the probes of a recording give at any `time.monotonic_ns()`, also an
    #: earlier one; `Reading.device` is the place among `probes`
    played_at: Callable[[int], tuple[Reading, ...]] | None = None
    #: what came since the last time it was asked, with all absences of then; it is
    #: asked at each tick, so it never blocks
    later: Callable[[], Discovery | None] | None = None
    events: EventFeed | None = None


class Source(Protocol):
    """Finds the devices of one kind."""

    #: what it is about, for a person: "NVML", "The host", ...
    what: str

    def open(self) -> Discovery:
        """Find the devices.

        Raises:
            Unavailable: there is nothing to read, with the reason.
        """

    def close(self) -> None:
        """Give everything back; no probe is read any more."""
