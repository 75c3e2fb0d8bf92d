"""Looks at the holders of this node's GPUs, and tells of each interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from warpbook_monitors.attempt import Attempt
from warpbook_monitors.frames import Frame
from warpbook_monitors.holders.ledger import Ledger
from warpbook_monitors.holders.reading import Held, HolderReader
from warpbook_monitors.holders.shares import GpuShare
from warpbook_monitors.sampling.sampler import Message, Sampler

LOOK_S = 5.0
#: after it a driver that does not answer is left alone; its GPUs are stale by then
_PATIENCE_S = 10.0
#: after a longer pause, as of a machine that slept, nothing is charged for it
_MOST_PAUSE_MS = 30_000


class HolderWatch:
    """A thread that looks and adds up."""

    def __init__(
        self,
        sampler: Sampler,
        every_s: float,
        tell: Callable[[tuple[GpuShare, ...]], None],
    ) -> None:
        """Take who reads the GPUs, and who gets the shares.

        Args:
            sampler: it is kept running.
            every_s: length of an interval.
            tell: called with the shares of each interval, on the watch's thread.
        """
        self._sampler = sampler
        self._every_s, self._tell = every_s, tell
        self._reader, self._ledger = HolderReader(), Ledger()
        self._frames: list[Frame] = []
        self._lock = threading.Lock()
        self._attempt: Attempt[dict[str, tuple[Held, ...]]] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="warpbook-holders", daemon=True
        )

    def start(self) -> None:
        self._sampler.listen(self._note)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=_PATIENCE_S)

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
            self._look()
            self._ledger.add(self._sampler.devices, self._taken(), {}, 0)
            while not self._ended.wait(min(LOOK_S, self._every_s)):
                held = self._look()
                now_s = time.monotonic()
                elapsed_ms = round((now_s - looked_s) * 1000)
                looked_s = now_s
                devices, frames = self._sampler.devices, self._taken()
                if elapsed_ms > _MOST_PAUSE_MS:
                    self._ledger, elapsed_ms, begun_s = Ledger(), 0, now_s
                self._ledger.add(devices, frames, held, elapsed_ms)
                if now_s - begun_s >= self._every_s:
                    self._tell(self._ledger.close())
                    begun_s = now_s

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
