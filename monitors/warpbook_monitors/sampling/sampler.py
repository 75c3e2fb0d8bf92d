"""One clock, one thread a device: turns probes into a stream of frames.

A probe that hangs makes its own device stale and nothing else. While nobody
watches, no probe is read, and the gap is told when somebody watches again.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from warpbook_monitors.attempt import Attempt
from warpbook_monitors.errors import Unavailable
from warpbook_monitors.frames import (
    Absence,
    Device,
    Devices,
    Event,
    Frame,
    Gap,
    Reading,
    Replay,
)
from warpbook_monitors.sampling.backoff import MOST_CPU_RATIO, BackOff
from warpbook_monitors.sampling.own_cost import Costs
from warpbook_monitors.sampling.reader import Reader
from warpbook_monitors.source import Discovery, EventFeed, Source

_log = logging.getLogger(__name__)

BASE_RATE_HZ = 10.0
#: a source that has not opened by then is told as absent
OPEN_TIMEOUT_S = 30.0
#: how soon `open` sees that it is abandoned
_LOOK_S = 0.1
#: a read that has not come back by then hangs
CLOSE_TIMEOUT_S = 1.0
#: GPUs tell few events; of a storm, the rest comes with the next ticks
EVENTS_PER_TICK = 20

Message = Frame | Gap | Devices | Event
Listener = Callable[[Message], None]


class Sampler:
    """Reads every device of its sources at one rate, while somebody watches."""

    def __init__(
        self,
        sources: Sequence[Source],
        rate_hz: float = BASE_RATE_HZ,
        costs: Costs | None = None,
        most_cpu_ratio: float = MOST_CPU_RATIO,
        stand_in: Source | None = None,
    ) -> None:
        """Read nothing yet; `stand_in` is opened where no other source has a GPU."""
        self.rate_hz = rate_hz
        self.replay: Replay | None = None
        #: written into every frame; what the machine is doing, if one knows
        self.label: str | None = None
        self._sources = list(sources)
        self._stand_in = stand_in
        self._costs = costs or Costs()
        self._back_off = BackOff(rate_hz, most_cpu_ratio)
        self._openings: list[tuple[Source, Attempt[Discovery]]] = []
        #: what each source gave last
        self._opened: list[Discovery] = []
        self._readers: list[Reader] = []
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._listeners: list[Listener] = []
        self._watchers: list[str] = []
        self._change = threading.Condition()
        self._answered = threading.Condition()
        self._closed = False
        self._eased = False
        self._clock: threading.Thread | None = None
        self._seq = 0
        self._newest: Frame | None = None
        self._first_seq: int | None = None
        #: of each recording, where its devices begin and what it gives at a time
        self._played: list[tuple[int, Callable[[int], tuple[Reading, ...]]]] = []
        self._label_at: Callable[[int], str | None] | None = None

    def open(self) -> None:
        """Open every source, each in a thread, and start the clock.

        What can't be opened is in `absences`; this never raises for it.
        """
        self._opened = self._open(self._sources)
        has_gpus = any(
            probe.device.kind == "gpu"
            for opened in self._opened
            for probe in opened.probes
        )
        # a source that is still looking may have some, and views know it as live
        may_come = any(opened.later for opened in self._opened)
        if self._stand_in is not None and not (has_gpus or may_come):
            self._sources.append(self._stand_in)
            self._opened = [*self._open([self._stand_in]), *self._opened]
        for opened in self._opened:
            self.replay = self.replay or opened.replay
            self._label_at = self._label_at or opened.label_at
            self._add_readers(opened)
        self._clock = threading.Thread(
            target=self._run, name="warpbook-clock", daemon=True
        )
        self._clock.start()

    def _open(self, sources: Sequence[Source]) -> list[Discovery]:
        openings = [
            (source, Attempt(source.open, "warpbook-open")) for source in sources
        ]
        self._openings += openings
        deadline_s = time.monotonic() + OPEN_TIMEOUT_S
        for _, attempt in openings:
            while attempt.is_running and time.monotonic() < deadline_s:
                if self._closed:
                    break
                attempt.wait(_LOOK_S)
        return [_opened(source, attempt) for source, attempt in openings]

    def abandon(self) -> None:
        """Let `open` on another thread end soon, with what is open by then."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def close(self) -> None:
        """Stop the clock and the readers, and close the sources."""
        self.abandon()
        if self._clock is not None:
            self._clock.join(timeout=2)
        deadline_s = time.monotonic() + CLOSE_TIMEOUT_S
        hung = [not reader.stop(deadline_s) for reader in self._readers]
        hung += [attempt.is_running for _, attempt in self._openings]
        if any(hung):
            # closing a library under a call that still runs would crash the process
            _log.warning("A device does not answer; its library is left open.")
            return
        for source in self._sources:
            source.close()

    @property
    def absences(self) -> tuple[Absence, ...]:
        """What one may expect and is not there; it shrinks when something comes."""
        return tuple(absence for opened in self._opened for absence in opened.absences)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The descriptions, in the order of `Reading.device`; new ones come last."""
        return tuple(reader.device for reader in self._readers)

    @property
    def newest(self) -> Frame | None:
        """The last frame, however old."""
        return self._newest

    def played(self, from_ms: float, to_ms: float) -> Iterator[Frame]:
        """Give what a recording would have shown in a span before now, oldest first.

        It is played over and over, so each earlier time has its place in it, too.
        Devices that are measured have no reading there. Any thread may take it.

        Args:
            from_ms: begin of the span, in Unix ms.
            to_ms: its end; the first frame that was read, or now.
        """
        period_ms = 1000 / self.rate_hz
        first_seq = 0 if self._first_seq is None else self._first_seq
        now_ms, now_ns = _unix_ms(), time.monotonic_ns()
        count = int((to_ms - from_ms) / period_ms) if self.replay else 0
        for back in range(count, 0, -1):
            time_ms = to_ms - back * period_ms
            at_ns = now_ns - round((now_ms - time_ms) * 1e6)
            yield Frame(
                seq=first_seq - back,
                time_ms=time_ms,
                readings=self._played_at(at_ns),
                label=self._label_at(at_ns) if self._label_at else None,
            )

    def _played_at(self, at_ns: int) -> tuple[Reading, ...]:
        readings = [reader.unread for reader in self._readers]
        for first, played_at in self._played:
            for reading in played_at(at_ns):
                place = first + reading.device
                readings[place] = replace(reading, device=place)
        return tuple(readings)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each message, on the clock's thread.

        Returns:
            a function that ends it.
        """
        self._listeners = [*self._listeners, listener]

        def stop() -> None:
            self._listeners = [other for other in self._listeners if other != listener]

        return stop

    @contextlib.contextmanager
    def watch(self, who: str) -> Iterator[None]:
        """Keep the devices being read as long as the context lasts."""
        with self._change:
            self._watchers.append(who)
            self._change.notify_all()
        try:
            yield
        finally:
            with self._change:
                self._watchers.remove(who)

    def ease(self, yes: bool) -> None:
        """Read once a second only, while nobody looks who wants more."""
        self._eased = yes

    def _is_due(self) -> bool:
        newest = self._newest
        return not self._eased or not newest or self._seq - newest.seq >= self.rate_hz

    def _run(self) -> None:
        period_ns = round(1e9 / self.rate_hz)
        while self._wait_for_watchers():
            next_ns = time.monotonic_ns()
            for feed in self._feeds():
                feed.start(self._events.put)
            while self._watchers and not self._closed:
                if self._is_due():
                    cpu_s = time.thread_time()
                    self._tick(next_ns, period_ns)
                    self._costs.add_cpu(time.thread_time() - cpu_s)
                    self._back_off.after_tick(time.monotonic(), self._costs)
                    if self._eased:
                        self._costs.rate_hz = 1.0
                # a late tick skips, it does not make the following ones late
                behind = (time.monotonic_ns() - next_ns) // period_ns
                periods = max(behind + 1, self._back_off.step)
                self._seq += periods
                next_ns += periods * period_ns
                with self._change:
                    wait_s = (next_ns - time.monotonic_ns()) / 1e9
                    self._change.wait_for(lambda: self._closed, max(wait_s, 0))

    def _wait_for_watchers(self) -> bool:
        """Rest until somebody watches; tell the gap. False when closed."""
        for feed in self._feeds():
            feed.stop()
        for reader in self._readers:
            reader.rest()
        self._back_off.rest()
        with self._change:
            self._change.wait_for(lambda: self._watchers or self._closed)
        if self._newest is not None and not self._closed:
            self._publish(
                Gap(
                    self._newest.time_ms,
                    _unix_ms(),
                    "not_watched",
                    "Nobody watched, so nothing was read.",
                )
            )
        return not self._closed

    def _tick(self, tick_ns: int, period_ns: int) -> None:
        time_ms = _unix_ms()
        started = [reader for reader in self._readers if reader.ask(tick_ns)]
        with self._answered:
            self._answered.wait_for(
                lambda: all(reader.idle for reader in started), period_ns / 2e9
            )
        has_new = self._take_newcomers()
        if any([reader.take_change() for reader in self._readers]) or has_new:
            self._publish(Devices(time_ms, self.devices, self.absences))
        self._publish_events()
        self._newest = Frame(
            seq=self._seq,
            time_ms=time_ms,
            readings=tuple(self._reading(reader, tick_ns) for reader in self._readers),
            label=self._label_at(tick_ns) if self._label_at else self.label,
        )
        if self._first_seq is None:
            self._first_seq = self._seq
        self._costs.tick_ms = round((time.monotonic_ns() - tick_ns) / 1e6, 2)
        self._publish(self._newest)

    def _add_readers(self, opened: Discovery) -> None:
        if opened.played_at is not None:
            self._played.append((len(self._readers), opened.played_at))
        for probe in opened.probes:
            position = len(self._readers)
            self._readers.append(Reader(position, probe, self._answered, self._costs))

    def _take_newcomers(self) -> bool:
        """Read from the next tick on what a source has found since."""
        has_new = False
        for number, opened in enumerate(self._opened):
            later = opened.later() if opened.later else None
            if later is None:
                continue
            self._opened[number] = later
            self._add_readers(later)
            if later.events and not opened.events:
                later.events.start(self._events.put)
            has_new = True
        return has_new

    def _feeds(self) -> list[EventFeed]:
        return [opened.events for opened in self._opened if opened.events]

    def _publish_events(self) -> None:
        """Tell what came since the last tick, on the clock's own thread."""
        for _ in range(min(self._events.qsize(), EVENTS_PER_TICK)):
            self._publish(self._events.get())

    def _reading(self, reader: Reader, tick_ns: int) -> Reading:
        # three ticks: the longest call that is no fault takes 16 ms (an H200)
        return reader.newest(tick_ns, stale_after_ns=round(3e9 / self.rate_hz))

    def _publish(self, message: Message) -> None:
        for listener in self._listeners:
            try:
                listener(message)
            except Exception:  # noqa: BLE001 - one reader's defect must not stop the clock
                _log.exception("A listener of the sampler failed.")


def _opened(source: Source, attempt: Attempt[Discovery]) -> Discovery:
    """Give what was found, or in words why nothing was."""
    remedy = "See the server's log, and run `warpbook doctor`."
    later = None
    try:
        return attempt.outcome(time.monotonic())
    except Unavailable as error:
        return Discovery([], (error.absence,))
    except TimeoutError:
        why = f"It did not open within {OPEN_TIMEOUT_S:.0f} s."
        remedy = f"It is shown once it opens. {remedy}"
        later = partial(_late, source, attempt)
    except Exception as error:  # noqa: BLE001 - a source's defect must not hide the others
        _log.exception("Opening %s failed.", source.what)
        why = f"warpbook failed to open it: {error!r}"[:300]
    return Discovery([], (Absence(source.what, "unknown", why, remedy),), later=later)


def _late(source: Source, attempt: Attempt[Discovery]) -> Discovery | None:
    """Give what a source that hung has found, as soon as it answers."""
    if attempt.is_running:
        return None
    opened = _opened(source, attempt)
    # every view was told by then that nothing is played
    return Discovery([], opened.absences) if opened.replay else opened


def _unix_ms() -> float:
    """Now, in Unix ms with microseconds."""
    return time.time_ns() // 1000 / 1000
