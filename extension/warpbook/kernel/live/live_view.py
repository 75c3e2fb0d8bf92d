"""Tells about a live profile while its cell runs: a line, and the dashboard.

A thread looks once a second. Nothing is queued: each report holds all windows, so one
that the server is too slow for is left out without a loss.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from warpbook.kernel.link.late_output import LateOutput
from warpbook.kernel.link.server_link import LinkError, NoServer
from warpbook.kernel.live.live import LiveRuns
from warpbook.kernel.live.live_text import line
from warpbook_profiler.model.live import Live

_PERIOD_S = 1.0
#: while a window waits for a moment in which it can be given up
_STALE_PERIOD_S = 0.02
#: without a new window; a view that hears nothing for longer says so
_HEARTBEAT_S = 10.0
#: a report that is on its way at the end must come before the last one
_AT_END_S = 2.5


class LiveView:
    """From the beginning of a cell to its end."""

    def __init__(
        self,
        runs: LiveRuns,
        output: LateOutput | None,
        post: Callable[[Live], None] | None,
    ) -> None:
        """Begin to tell.

        Args:
            runs: what is told about.
            output: the line under the cell.
            post: hands in how it stands; raises LinkError.
        """
        self._runs = runs
        self._output = output
        self._to_dashboard = post
        self._ended = threading.Event()
        self._told_windows = -1
        self._told_s = 0.0
        self._trouble = ""
        self._thread = threading.Thread(
            target=self._work, name="warpbook-live", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Tell no more, and leave the line as it is at the end."""
        self._ended.set()
        self._thread.join(_AT_END_S)
        self._show(self._runs.view())

    def _work(self) -> None:
        shown_s = 0.0
        period_s = _PERIOD_S
        while not self._ended.wait(period_s):
            period_s = _PERIOD_S
            if self._runs.is_stale:
                self._runs.give_up_stale()
                period_s = _STALE_PERIOD_S
            now_s = time.monotonic()
            if now_s - shown_s >= _PERIOD_S:
                shown_s = now_s
                live = self._runs.view()
                self._show(live)
                self._post(live, now_s)
            self._runs.telling_ns = time.thread_time_ns()

    def _show(self, live: Live) -> None:
        if self._output is not None:
            self._output.update(line(live, self._trouble))

    def _post(self, live: Live, now_s: float) -> None:
        if self._to_dashboard is None:
            return
        windows = sum(window.merged for window in live.windows)
        is_due = now_s - self._told_s >= _HEARTBEAT_S
        if windows == self._told_windows and not is_due:
            return
        # after a failure it waits for the heartbeat too
        self._told_windows, self._told_s = windows, now_s
        try:
            self._to_dashboard(live)
            self._trouble = ""
        except NoServer:
            self._to_dashboard = None
        except LinkError as problem:
            self._trouble = str(problem)
