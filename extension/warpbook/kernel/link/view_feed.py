"""Telemetry out of this kernel, for a page that no warpbook server serves.

The same sampler as the server's runs here, and its messages go over the widget's
comm. It reads only as long as a view says, every few seconds, that it is there.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from IPython.core.getipython import get_ipython

from warpbook.protocol import PROTOCOL_VERSION, Hello
from warpbook_monitors._version import __version__

if TYPE_CHECKING:
    from warpbook_monitors.sampling.sampler import Message, Sampler

#: half of the server's: each frame passes through the notebook's own channel
RATE_HZ = 5.0
#: a view says every three seconds that it is there
ABANDONED_AFTER_S = 15.0

_encode = msgspec.json.Encoder().encode


class ViewFeed:
    """Feeds the views of one widget, as long as there are any."""

    def __init__(self, send: Callable[[str], None], plays: bool = True) -> None:
        """Begin nothing yet.

        Args:
            send: sends a message of the protocol to all views of the widget.
            plays: the recording that ships with warpbook, where there is no GPU.
        """
        self._send = send
        self._kernel_sampler = _playing_sampler if plays else _live_sampler
        self._lock = threading.Lock()
        self._sampler: Sampler | None = None
        self._feeding: contextlib.ExitStack | None = None
        self._heard_s = 0.0
        _cells.follow()

    def keep(self, greeted: bool) -> None:
        """Hear from a view that it is there, and whether it has had a hello."""
        self._heard_s = time.monotonic()
        with self._lock:
            if self._feeding is None:
                self._feeding = contextlib.ExitStack()
                # looking for devices may take long: a driver may hang
                threading.Thread(
                    target=self._begin, name="warpbook-feed", daemon=True
                ).start()
            elif self._sampler is not None and not greeted:
                self._send(_hello(self._sampler))

    def _begin(self) -> None:
        sampler = self._kernel_sampler.open()
        with self._lock:
            if self._feeding is None:
                return
            self._sampler = sampler
            self._send(_hello(sampler))
            self._feeding.callback(sampler.listen(self._take))
            self._feeding.enter_context(sampler.watch("widget"))

    def _take(self, message: Message) -> None:
        heard_s = max(self._heard_s, _cells.idle_since_s())
        if time.monotonic() - heard_s < ABANDONED_AFTER_S:
            self._send(_encode(message).decode())
            return
        with self._lock:
            feeding, self._feeding = self._feeding, None
        if feeding is not None:
            feeding.close()


class _KernelSampler:
    """This kernel's one sampler, for all of its widgets."""

    def __init__(self, plays: bool) -> None:
        self._plays = plays
        self._lock = threading.Lock()
        self._sampler: Sampler | None = None

    def open(self) -> Sampler:
        from warpbook_monitors.open_sources import SHIPPED_RECORDING, live_sources
        from warpbook_monitors.sampling.sampler import Sampler

        with self._lock:
            if self._sampler is None:
                stand_in = SHIPPED_RECORDING if self._plays else None
                self._sampler = Sampler(live_sources(), RATE_HZ, stand_in=stand_in)
                self._sampler.open()
            return self._sampler


class _Cells:
    """Whether a cell runs: what views say to the kernel may wait behind it."""

    def __init__(self) -> None:
        self._is_followed = False
        self._idle_since_s: float | None = 0.0

    def follow(self) -> None:
        """Follow the cells of this kernel, from inside the first one."""
        shell = get_ipython()
        if self._is_followed or shell is None:
            return
        self._is_followed = True
        self._begin()
        shell.events.register("pre_execute", self._begin)
        shell.events.register("post_execute", self._end)

    def idle_since_s(self) -> float:
        """Since when no cell runs; now, while one does."""
        since_s = self._idle_since_s
        return time.monotonic() if since_s is None else since_s

    def _begin(self) -> None:
        self._idle_since_s = None

    def _end(self) -> None:
        self._idle_since_s = time.monotonic()


_playing_sampler = _KernelSampler(plays=True)
_live_sampler = _KernelSampler(plays=False)
_cells = _Cells()


def _hello(sampler: Sampler) -> str:
    hello = Hello(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        time_ms=time.time() * 1e3,
        rate_hz=sampler.rate_hz,
        devices=sampler.devices,
        absences=sampler.absences,
        replay=sampler.replay,
    )
    return _encode(hello).decode()
