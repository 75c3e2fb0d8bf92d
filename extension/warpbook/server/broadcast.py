"""One stream of frames to many viewers: each frame is encoded once.

Everything here runs on the server's event loop; the sampler's thread only hands
its messages over.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Literal, Protocol

from warpbook._version import __version__
from warpbook.protocol import (
    PROTOCOL_VERSION,
    Device,
    Frame,
    Gap,
    Hello,
    StateNow,
)
from warpbook.server.insight import Insight
from warpbook.server.loop_lag import measure_loop_lag
from warpbook.server.selection import Pace, Selection, encode
from warpbook_monitors.frames import end_ms
from warpbook_monitors.history.history import History
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.sampling.sampler import Message, Sampler

#: how long a single request keeps the devices being read
SCRAPE_WATCH_S = 5.0
#: written to in one go, which takes about 2 ms
BATCH_VIEWERS = 32
#: two ticks and a GPM window: the first frame that says anything of a woken GPU
_WAKE_S = 0.35


#: when devices are read although nobody takes frames
SlowWatch = Literal["never", "connected", "always"]


class Viewer(Protocol):
    """Somebody who is sent frames."""

    def send_frame(self, encoded: bytes, time_ms: float) -> bool:
        """Send a frame unless the one before is still on its way; then False."""

    def send(self, encoded: bytes) -> None:
        """Send a message that must not be left out."""


class _Group:
    """The viewers of one selection."""

    def __init__(self, selection: Selection, base_rate_hz: float) -> None:
        self.selection = selection
        self.pace = Pace(selection.rate_hz, base_rate_hz)
        self.viewers: set[Viewer] = set()


class Broadcaster:
    """Starts and rests the sampler with its viewers, and feeds them."""

    def __init__(self, sampler: Sampler, history: History, costs: Costs) -> None:
        """Take a sampler that is not open yet."""
        self.sampler = sampler
        self.history = history
        self._costs = costs
        self._groups: dict[Selection, _Group] = {}
        #: connecting or connected, and those of them that have had their hello
        self._admitted: set[Viewer] = set()
        self._everyone: set[Viewer] = set()
        self._followers: list[Callable[[Message], None]] = []
        self._greeters: list[Callable[[], Iterable[bytes]]] = []
        self._completers: list[Callable[[StateNow], Awaitable[StateNow]]] = []
        #: who wants the devices read although no viewer may be there
        self._held: set[str] = set()
        self._watch_slowly: SlowWatch = "never"
        self._watch = contextlib.ExitStack()
        self._opening: asyncio.Task[None] | None = None
        self._scraped: asyncio.TimerHandle | None = None
        self._woken_s: float | None = None
        self._closed = False
        self._insight = Insight(costs)
        costs.viewers = 0
        costs.frames_dropped = 0

    async def ready(self) -> None:
        """Wait until the devices are found; the first call makes them be looked for."""
        await asyncio.shield(self._begin_opening())

    async def close(self) -> None:
        """Stop the sampler; a driver that hangs is not waited for."""
        self._closed = True
        self._watch.close()
        if self._scraped is not None:
            self._scraped.cancel()
        if self._opening is not None:
            self.sampler.abandon()
            await self._opening
            await asyncio.to_thread(self.sampler.close)

    def hello(self) -> Hello:
        """Describe the stream as it is now."""
        return Hello(
            protocol=PROTOCOL_VERSION,
            version=__version__,
            time_ms=time.time() * 1000,
            rate_hz=self.sampler.rate_hz,
            devices=self.devices,
            absences=self.sampler.absences,
            replay=self.sampler.replay,
        )

    @property
    def devices(self) -> tuple[Device, ...]:
        """What is being read."""
        return self.sampler.devices

    @property
    def watched(self) -> bool:
        """Whether the devices are being read."""
        return self._woken_s is not None

    @property
    def attended(self) -> bool:
        """Whether a page is there, or the alert rules always hold: not for scrapes."""
        return bool(self._everyone) or self._watch_slowly == "always"

    async def state(self) -> StateNow:
        """Give the newest frame, waking the sampler if it rests."""
        await self.ready()
        self.keep_watching(SCRAPE_WATCH_S)
        awake_s = time.monotonic() - (self._woken_s or 0.0)
        await asyncio.sleep(max(_WAKE_S - awake_s, 0))
        state = StateNow(
            protocol=PROTOCOL_VERSION,
            version=__version__,
            devices=self.devices,
            absences=self.sampler.absences,
            replay=self.sampler.replay,
            frame=self.sampler.newest,
            verdicts=self._insight.verdicts(self.devices),
        )
        for completer in self._completers:
            state = await completer(state)
        return state

    def keep_watching(self, seconds: float) -> None:
        """Let the sampler run for so long although no viewer may be there."""
        self._begin_opening()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        if self._scraped is not None:
            until_s = max(until_s, self._scraped.when())
            self._scraped.cancel()
        self._scraped = loop.call_at(until_s, self._forget_scrape)
        self._attend()

    def admit(self, viewer: Viewer, most: int) -> bool:
        """Count a viewer that is connecting; False if there are `most` already."""
        if len(self._admitted) >= most:
            return False
        self._admitted.add(viewer)
        return True

    def connect(self, viewer: Viewer) -> None:
        """Begin to send an admitted viewer what is for everybody."""
        if viewer in self._admitted:
            self._everyone.add(viewer)
            self._attend()

    def disconnect(self, viewer: Viewer) -> None:
        """Forget a viewer altogether."""
        self._admitted.discard(viewer)
        self._everyone.discard(viewer)
        self.unsubscribe(viewer)

    def subscribe(self, viewer: Viewer, selection: Selection) -> None:
        """Send `viewer` the frames of `selection` from now on."""
        self.unsubscribe(viewer)
        group = self._groups.get(selection)
        if group is None:
            group = _Group(selection, self.sampler.rate_hz)
            self._groups[selection] = group
        group.viewers.add(viewer)
        self._attend()

    def unsubscribe(self, viewer: Viewer) -> None:
        """Send `viewer` no more frames."""
        for group in self._groups.values():
            group.viewers.discard(viewer)
        self._groups = {each: g for each, g in self._groups.items() if g.viewers}
        self._attend()

    def send_everyone(self, encoded: bytes) -> None:
        """Send a message to every connected viewer."""
        for viewer in tuple(self._everyone):
            viewer.send(encoded)

    def send_watching(self, encoded: bytes) -> None:
        """Send a message to every viewer that takes frames."""
        for group in self._groups.values():
            for viewer in tuple(group.viewers):
                viewer.send(encoded)

    def follow(self, follower: Callable[[Message], None]) -> None:
        """Call `follower` with each message of the sampler, after it was sent."""
        self._followers.append(follower)

    def greet(self, greeter: Callable[[], Iterable[bytes]]) -> None:
        """Send what `greeter` gives to each new viewer, after the hello."""
        self._greeters.append(greeter)

    def complete(self, completer: Callable[[StateNow], Awaitable[StateNow]]) -> None:
        """Let `completer` add what it knows to each state that is asked for."""
        self._completers.append(completer)

    def greetings(self) -> Iterable[bytes]:
        """Give what a new viewer is sent after the hello."""
        for greeter in self._greeters:
            yield from greeter()

    def hold(self, who: str) -> None:
        """Have the devices read until `release`, whether or not anybody looks."""
        self._begin_opening()
        self._held.add(who)
        self._attend()

    def release(self, who: str) -> None:
        """End what `hold` began."""
        self._held.discard(who)
        self._attend()

    def watch_slowly(self, when: SlowWatch) -> None:
        """Have the devices read once a second at least, although nobody takes frames.

        Args:
            when: "connected" is while there is a page, also a hidden one.
        """
        if when == "always":
            self._begin_opening()
        self._watch_slowly = when
        self._attend()

    def _begin_opening(self) -> asyncio.Task[None]:
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
        return self._opening

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()

        def hand_over(message: Message) -> None:
            # a loop that is closing takes no more, and nobody is left to tell
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._take, message)

        self.sampler.listen(hand_over)
        await asyncio.to_thread(self.sampler.open)

    def _take(self, message: Message) -> None:
        encoded = encode(message)
        self.history.append(end_ms(message), encoded)
        if isinstance(message, Frame):
            self._send_frame(message, encoded)
            for told in self._insight.take(message, self.devices):
                self.send_watching(encode(told))
        elif isinstance(message, Gap):
            self.send_watching(encoded)
        else:
            self.send_everyone(encoded)
        for follower in self._followers:
            follower(message)

    def _send_frame(self, frame: Frame, whole: bytes) -> None:
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

    def _forget_scrape(self) -> None:
        self._scraped = None
        self._attend()

    def _attend(self) -> None:
        """Let the sampler run exactly while somebody wants frames."""
        viewers = sum(len(group.viewers) for group in self._groups.values())
        self._costs.viewers = viewers
        wanted = viewers > 0 or self._scraped is not None or bool(self._held)
        self.sampler.ease(not wanted)
        slowly = self._watch_slowly
        wanted = wanted or slowly == "always"
        wanted = wanted or (slowly == "connected" and bool(self._everyone))
        wanted = wanted and not self._closed
        if wanted and not self.watched:
            self._watch.enter_context(self.sampler.watch("server"))
            lag = asyncio.create_task(measure_loop_lag(self._costs))
            self._watch.callback(lag.cancel)
            self._woken_s = time.monotonic()
        elif not wanted and self.watched:
            self._watch.close()
            self._woken_s = None
