"""Who is connected to the stream, and what each of them is sent.

Everything here runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Protocol

from warpbook.protocol import Frame
from warpbook.server.stream.demand import PAGES, Demand, Lease
from warpbook.server.stream.selection import Pace, Selection
from warpbook_monitors.sampling.own_cost import Costs

#: written to in one go, which takes about 2 ms
BATCH_VIEWERS = 32


class Viewer(Protocol):
    """Somebody who is sent frames."""

    def send_frame(self, encoded: bytes, time_ms: float) -> bool:
        """Send a frame unless the one before is still on its way; then False."""

    def send(self, encoded: bytes) -> None:
        """Send a message that must not be left out."""


class _Group:
    """The viewers of one selection, each with the lease that keeps frames coming."""

    def __init__(self, selection: Selection, base_rate_hz: float) -> None:
        self.selection = selection
        self.pace = Pace(selection.rate_hz, base_rate_hz)
        self.viewers: dict[Viewer, Lease] = {}


class Viewers:
    """Admits viewers, has the devices read for them, and sends to them."""

    def __init__(self, demand: Demand, rate_hz: float, costs: Costs) -> None:
        """Begin without a viewer.

        Args:
            demand: is told of viewers that are connected, and that take frames.
            rate_hz: of the frames that come.
            costs: counts viewers, and frames that were left out.
        """
        self._demand = demand
        self._rate_hz = rate_hz
        self._costs = costs
        self._groups: dict[Selection, _Group] = {}
        #: connecting or connected
        self._admitted: set[Viewer] = set()
        #: those of them that have had their hello
        self._connected: dict[Viewer, Lease] = {}
        costs.viewers = 0
        costs.frames_dropped = 0

    def admit(self, viewer: Viewer, most: int) -> bool:
        """Count a viewer that is connecting; False if there are `most` already."""
        if len(self._admitted) >= most:
            return False
        self._admitted.add(viewer)
        return True

    @property
    def is_anybody(self) -> bool:
        return bool(self._connected)

    def connect(self, viewer: Viewer) -> None:
        """Begin to send an admitted viewer what is for everybody."""
        if viewer in self._admitted and viewer not in self._connected:
            lease = self._demand.lease(PAGES, rate=None)
            self._connected[viewer] = lease
            lease.begin()

    def disconnect(self, viewer: Viewer) -> None:
        self._admitted.discard(viewer)
        self.unsubscribe(viewer)
        if (lease := self._connected.pop(viewer, None)) is not None:
            lease.end()

    def subscribe(self, viewer: Viewer, selection: Selection) -> None:
        """Send `viewer` the frames of `selection` from now on."""
        lease = self._demand.lease("frames")
        # before the one that it had ends, so that the devices don't rest between
        lease.begin()
        self.unsubscribe(viewer)
        group = self._groups.get(selection)
        if group is None:
            group = self._groups[selection] = _Group(selection, self._rate_hz)
        group.viewers[viewer] = lease
        self._count()

    def unsubscribe(self, viewer: Viewer) -> None:
        for group in self._groups.values():
            if (lease := group.viewers.pop(viewer, None)) is not None:
                lease.end()
        self._groups = {key: g for key, g in self._groups.items() if g.viewers}
        self._count()

    def send_everyone(self, encoded: bytes) -> None:
        """Send a message to every connected viewer."""
        for viewer in tuple(self._connected):
            viewer.send(encoded)

    def send_watching(self, encoded: bytes) -> None:
        """Send a message to every viewer that takes frames."""
        for group in self._groups.values():
            for viewer in tuple(group.viewers):
                viewer.send(encoded)

    def send_frame(self, frame: Frame, whole: bytes) -> None:
        """Send each group its part of a frame, at its pace.

        Args:
            frame: the newest.
            whole: the same, encoded.
        """
        for group in tuple(self._groups.values()):
            if group.pace.takes(frame.seq):
                encoded = group.selection.encode(frame, whole)
                self._send_batch(iter(tuple(group.viewers)), encoded, frame.time_ms)

    def _send_batch(
        self, viewers: Iterator[Viewer], encoded: bytes, time_ms: float
    ) -> None:
        """Send to some viewers, then let the loop serve others before the next."""
        batch = tuple(itertools.islice(viewers, BATCH_VIEWERS))
        dropped = sum(not viewer.send_frame(encoded, time_ms) for viewer in batch)
        if dropped:
            self._costs.frames_dropped = (self._costs.frames_dropped or 0) + dropped
        if len(batch) == BATCH_VIEWERS:
            asyncio.get_running_loop().call_soon(
                self._send_batch, viewers, encoded, time_ms
            )

    def _count(self) -> None:
        self._costs.viewers = sum(len(g.viewers) for g in self._groups.values())
