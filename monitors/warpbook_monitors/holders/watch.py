"""Looks at the holders of this node's GPUs, and tells a hub and Prometheus of them."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Protocol

from warpbook_monitors.attempt import Attempt
from warpbook_monitors.frames import Device, Frame
from warpbook_monitors.holders.hub_client import (
    HubAway,
    HubRefused,
    HubRefusedMessage,
    HubUnusable,
)
from warpbook_monitors.holders.ledger import Ledger
from warpbook_monitors.holders.node_protocol import (
    MOST_INTERVALS,
    MOST_MESSAGE_BYTES,
    GpuShare,
    Interval,
    Intervals,
    Taken,
)
from warpbook_monitors.holders.reading import Held, HolderReader
from warpbook_monitors.holders.spool import Spool
from warpbook_monitors.sampling.sampler import Message, Sampler

LOOK_S = 5.0
#: after it a driver that does not answer is left alone; its GPUs are stale by then
_PATIENCE_S = 10.0
#: after a longer pause, as of a machine that slept, nothing is charged for it
_MOST_PAUSE_MS = 30_000
#: between two batches of a backlog
_BACKLOG_PAUSE_S = 0.2
#: of a batch, so that its message stays within the hub's bound
_MOST_BATCH_BYTES = MOST_MESSAGE_BYTES - 4096


class Hub(Protocol):
    """Where intervals go."""

    def send(self, message: Intervals) -> Taken:
        """Send a batch.

        Raises:
            HubUnusable: the token can't be read.
            HubAway: the hub does not answer.
            HubRefused: it does not want it.
        """


class HolderWatch:
    """One thread that looks and adds up, and one that sends."""

    def __init__(
        self,
        sampler: Sampler,
        every_s: float,
        tell: Callable[[tuple[GpuShare, ...]], None],
        hub: Hub | None,
        spool: Spool,
        say: Callable[[str], None],
    ) -> None:
        """Take who reads the GPUs, and who gets the reports.

        Args:
            sampler: it is kept running.
            every_s: length of an interval.
            tell: called with the shares of each interval, on the watch's thread.
            hub: who is sent each interval; None sends nothing.
            spool: keeps what is not acknowledged.
            say: tells whoever runs it.
        """
        self._sampler = sampler
        self._every_s, self._tell = every_s, tell
        self._hub, self._spool, self._say = hub, spool, say
        self._reader, self._ledger = HolderReader(), Ledger()
        self._frames: list[Frame] = []
        self._lock = threading.Lock()
        self._attempt: Attempt[dict[str, tuple[Held, ...]]] | None = None
        self._sending: Attempt[None] | None = None
        self._stream, self._number = secrets.token_hex(16), 0
        self._most_together = MOST_INTERVALS
        #: as the hub said last; one that says nothing of it would refuse them
        self._tells_pids = False
        self._said = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="warpbook-holders", daemon=True
        )

    def start(self) -> None:
        """Begin to look."""
        self._sampler.listen(self._note)
        self._thread.start()

    def close(self) -> None:
        """End; what was not sent stays in the spool."""
        self._ended.set()
        self._thread.join(timeout=_PATIENCE_S)
        if self._sending is not None:
            self._sending.wait(_PATIENCE_S)
        self._spool.close()

    @property
    def is_running(self) -> bool:
        """Whether it still looks; it ends by itself only by a mistake of ours."""
        return self._thread.is_alive()

    def _note(self, message: Message) -> None:
        if isinstance(message, Frame):
            with self._lock:
                self._frames.append(message)

    def _run(self) -> None:
        # who shows charts wants more; holders change slowly
        self._sampler.ease(True)
        with self._sampler.watch("holders"):
            looked_s = begun_s = time.monotonic()
            from_ms = _unix_ms()
            self._look()
            self._ledger.add(self._sampler.devices, self._taken(), {}, 0, from_ms)
            while not self._ended.wait(min(LOOK_S, self._every_s)):
                held = self._look()
                now_s = time.monotonic()
                elapsed_ms = round((now_s - looked_s) * 1000)
                looked_s = now_s
                devices, frames = self._sampler.devices, self._taken()
                if elapsed_ms > _MOST_PAUSE_MS:
                    self._ledger, elapsed_ms = Ledger(), 0
                    begun_s, from_ms = now_s, _unix_ms()
                self._ledger.add(devices, frames, held, elapsed_ms, _unix_ms())
                if now_s - begun_s >= self._every_s:
                    self._close_interval(devices, from_ms, now_s - begun_s)
                    begun_s, from_ms = now_s, _unix_ms()
                    self._start_sending()

    def _look(self) -> dict[str, tuple[Held, ...]]:
        """Ask who holds what; nothing while the driver does not answer."""
        if self._attempt is None or not self._attempt.is_running:
            devices = [d for d in self._sampler.devices if d.kind in ("gpu", "mig")]
            live = [device for device in devices if device.origin == "live"]
            self._attempt = Attempt(
                lambda: self._reader.look(live), "warpbook-holders-look"
            )
            try:
                return self._attempt.outcome(time.monotonic() + _PATIENCE_S)
            except TimeoutError:
                pass
        return {}

    def _taken(self) -> list[Frame]:
        with self._lock:
            frames, self._frames = self._frames, []
        return frames

    def _close_interval(
        self, devices: tuple[Device, ...], from_ms: int, elapsed_s: float
    ) -> None:
        gpus = self._ledger.close(devices, self._sampler.newest, self._tells_pids)
        self._tell(gpus)
        if self._hub is None:
            return
        self._number += 1
        to_ms = from_ms + round(elapsed_s * 1000)
        self._spool.add(Interval(self._stream, self._number, from_ms, to_ms, gpus))

    def _start_sending(self) -> None:
        """Send beside the looks, which don't wait for a hub that does not answer."""
        if self._hub is None:
            return
        if self._sending is None or not self._sending.is_running:
            self._sending = Attempt(self._send, "warpbook-holders-send")

    def _send(self) -> None:
        """Send what is not acknowledged.

        A hub that does not take it is asked again after the next interval.
        """
        while self._send_batch():
            self._ended.wait(_BACKLOG_PAUSE_S)

    def _send_batch(self) -> bool:
        """Send the oldest intervals; tell whether there are more that can be sent."""
        batch = self._spool.oldest(self._most_together, _MOST_BATCH_BYTES)
        if self._hub is None or not batch or self._ended.is_set():
            return False
        try:
            taken = self._hub.send(Intervals(_unix_ms(), self._spool.dropped, batch))
        except HubRefusedMessage as problem:
            self._say_once(str(problem))
            # one by one; the one that can't be read holds up none that follow
            if len(batch) == 1:
                self._spool.drop(batch)
            self._most_together = 1
            # an older hub may have taken this one's place
            self._tells_pids = False
            return bool(self._spool.oldest(1, 1))
        except (HubAway, HubRefused, HubUnusable) as problem:
            self._say_once(str(problem))
            return False
        self._spool.acknowledge(batch)
        self._tells_pids = taken.wants_pids
        has_more = bool(self._spool.oldest(1, 1))
        if not has_more:
            self._most_together = MOST_INTERVALS
        words = (
            "The hub did not count {} intervals: too old, or of a clock that was set."
        )
        self._say_once(words.format(taken.refused) if taken.refused else "")
        return has_more

    def _say_once(self, words: str) -> None:
        if words and words != self._said:
            self._say(words)
        self._said = words


def _unix_ms() -> int:
    return time.time_ns() // 1_000_000
