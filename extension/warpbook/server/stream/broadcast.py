"""One stream of frames to many viewers: each frame is encoded once.

Everything here runs on the server's event loop; the sampler's thread only hands
its messages over.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from warpbook.protocol import (
    PROTOCOL_VERSION,
    Condition,
    Device,
    Frame,
    Gap,
    Health,
    Hello,
    StateNow,
    Verdict,
    Verdicts,
)
from warpbook.server.stream.demand import Demand
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook.server.stream.viewers import Viewers
from warpbook_monitors._version import __version__
from warpbook_monitors.frames import end_ms
from warpbook_monitors.history.history import History
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.sampling.sampler import Message, Sampler
from warpbook_monitors.verdicts.health import Minute
from warpbook_monitors.verdicts.window import Window

#: how long a single request keeps the devices being read
REQUEST_WATCH_S = 5.0
#: two ticks and a GPM window: the first frame that says anything of a woken GPU
_WAKE_S = 0.35
_PERIOD_S = 0.1
#: the worst of so many periods is told
_PERIODS = 10


class Broadcaster:
    """Starts and rests the sampler by demand, and hands on what it says."""

    def __init__(self, sampler: Sampler, history: History, costs: Costs) -> None:
        self.sampler = sampler
        self.history = history
        #: why the devices are read
        self.demand = Demand(self._attend)
        self.viewers = Viewers(self.demand, sampler.rate_hz, costs)
        self._costs = costs
        self._parts: list[StreamPart] = []
        self._requests = self.demand.lease("requests")
        self._watch = contextlib.ExitStack()
        self._opening: asyncio.Task[None] | None = None
        self._woken_s: float | None = None
        self._insight = Insight(costs)

    async def ready(self) -> None:
        """Wait until the devices are found; the first call makes them be looked for."""
        await asyncio.shield(self._begin_opening())

    async def close(self) -> None:
        """Stop the sampler; a driver that hangs is not waited for."""
        self.demand.close()
        self._requests.end()
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
        return self.sampler.devices

    async def state(self) -> StateNow:
        """Give the newest frame, waking the sampler if it rests."""
        await self.ready()
        self._requests.begin_for(REQUEST_WATCH_S)
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
        for part in self._parts:
            state = await part.complete(state)
        return state

    def keep_awake(self, seconds: float) -> None:
        """Have the devices read for so long, for somebody who will ask again."""
        self._requests.begin_for(seconds)

    def attach(self, part: StreamPart) -> None:
        """Let a part follow the messages, greet new viewers and complete states."""
        self._parts.append(part)

    def greetings(self) -> Iterable[bytes]:
        """Give what a new viewer is sent after the hello."""
        for part in self._parts:
            yield from part.greeting()

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
            self.viewers.send_frame(message, encoded)
            for news in self._insight.take(message, self.devices):
                self.viewers.send_watching(encode(news))
        elif isinstance(message, Gap):
            self.viewers.send_watching(encoded)
        else:
            self.viewers.send_everyone(encoded)
        for part in self._parts:
            part.follow(message)

    def _attend(self) -> None:
        """Let the sampler run at the rate that is wanted, or rest."""
        rate = self.demand.rate
        self.sampler.ease(rate != "full")
        if rate is not None and self._woken_s is None:
            self._begin_opening()
            self._watch.enter_context(self.sampler.watch("server"))
            lag = asyncio.create_task(measure_loop_lag(self._costs))
            self._watch.callback(lag.cancel)
            self._woken_s = time.monotonic()
        elif rate is None:
            self._watch.close()
            self._woken_s = None


async def measure_loop_lag(costs: Costs) -> None:
    """Keep `costs.loop_lag_ms` at the worst lag of the last second, for ever."""
    loop = asyncio.get_running_loop()
    lags_ms: deque[float] = deque(maxlen=_PERIODS)
    while True:
        due_s = loop.time() + _PERIOD_S
        await asyncio.sleep(_PERIOD_S)
        lags_ms.append((loop.time() - due_s) * 1000)
        costs.loop_lag_ms = round(max(*lags_ms, 0.0), 2)


PERIOD_MS = 1000.0
#: verdicts are looked at so often
LOOK_MS = 250.0


class Insight:
    """Follows the stream of frames; for the event loop."""

    def __init__(self, costs: Costs) -> None:
        """Nothing was seen yet; `costs` say whether the monitor itself backs off."""
        self._costs = costs
        self._window = Window()
        self._minute = Minute()
        self._told_ms = 0.0
        self._looked_ms = 0.0
        self._kinds: Mapping[str, tuple[str, str | None, bool]] = {}

    def take(
        self, frame: Frame, devices: Sequence[Device]
    ) -> tuple[Verdicts | Health, ...]:
        """Take a frame; give what is to be told now, which is often nothing."""
        self._window.append(frame, devices)
        self._minute.append(frame, devices)
        # absolute, because the clock may be set back
        is_due = abs(frame.time_ms - self._told_ms) >= PERIOD_MS
        if not is_due and abs(frame.time_ms - self._looked_ms) < LOOK_MS:
            return ()
        self._looked_ms = frame.time_ms
        verdicts = self._window.judge(devices)
        kinds = {
            device: (verdict.kind, verdict.unit, verdict.is_changing)
            for device, verdict in verdicts.items()
        }
        if not is_due and kinds == self._kinds:
            return ()
        self._kinds = kinds
        judged = Verdicts(frame.time_ms, self._window.seconds, verdicts)
        if not is_due:
            return (judged,)
        self._told_ms = frame.time_ms
        conditions = self._conditions(devices)
        return judged, Health(frame.time_ms, self._minute.seconds, conditions)

    def _conditions(
        self, devices: Sequence[Device]
    ) -> dict[str, tuple[Condition, ...]]:
        conditions_of = self._minute.conditions(devices)
        if self._costs.back_off:
            slower = Condition("backing off", "warning", 1.0, self._costs.back_off)
            conditions_of |= {
                device.id: (slower,) for device in devices if device.kind == "monitor"
            }
        return conditions_of

    def verdicts(self, devices: Sequence[Device]) -> dict[str, Verdict]:
        """Judge what was seen so far."""
        return self._window.judge(devices)
