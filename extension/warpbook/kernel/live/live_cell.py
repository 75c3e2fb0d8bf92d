"""A code that is profiled live: from its beginning to its last report."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Literal

from IPython.display import display
from msgspec.structs import replace

from warpbook.kernel.link.allocator import gpu_uuid
from warpbook.kernel.link.late_output import LateOutput
from warpbook.kernel.link.server_link import LinkError, NoServer, NotKept, ServerLink
from warpbook.kernel.link.timeline_handover import hand_in, timelines
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.live.live import LiveRuns
from warpbook.kernel.live.live_text import line, words
from warpbook.kernel.live.live_windows import WindowProfile
from warpbook.kernel.runs.profile import Notice, Profile
from warpbook.kernel.runs.runs import NotProfiled
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook_profiler.model.cell_profile import CellProfile, Completeness
from warpbook_profiler.model.errors import TraceError
from warpbook_profiler.model.live import Live

_Status = Literal["running", "ok", "error", "interrupted"]


class LiveCell:
    """Takes the place of the runs of a code that is profiled as a whole."""

    #: how often the code runs
    count = 1

    def __init__(
        self,
        shell: Any,
        link: ServerLink,
        share: float,
        *,
        title: str,
        cell_id: str | None = None,
        execution_count: int | None = None,
        quiet: bool = False,
        shapes: bool = True,
    ) -> None:
        """Prepare.

        Args:
            shell: None outside of IPython.
            link: the way to the dashboard.
            share: of the time, what profiling may take.
            title: what the report is called.
            cell_id: of the cell, where the frontend tells it.
            execution_count: of the cell.
            quiet: show nothing but what went wrong.
            shapes: record what each operator is called with.
        """
        self._shell = shell
        self._link = link
        self._share = share
        self._title = title
        self._cell_id = cell_id
        self._execution_count = execution_count
        self._quiet = quiet
        self._shapes = shapes
        self._id = str(uuid.uuid4())
        self._runs: LiveRuns | None = None
        self._view: LiveView | None = None
        self._problem: TraceError | None = None

    def again(self) -> bool:
        """Begin; what goes wrong is told at the end, and the code just runs."""
        runs = LiveRuns(self._share, self._shapes)
        try:
            runs.again()
        except TraceError as problem:
            self._problem = problem
            return False
        self._runs = runs
        output = None
        # a terminal would get a line a second
        if not self._quiet and hasattr(self._shell, "kernel"):
            output = LateOutput(self._shell, line(runs.view()))
        post = None if self._shell is None else self._post_running
        self._view = LiveView(runs, output, post)
        return False

    def at(self, line: int) -> None:
        """A live profile has no lines."""

    def shows_traceback(self) -> None:
        """Note that the code ends here if it failed: IPython now writes of it."""
        if self._runs is not None:
            self._runs.shows_traceback()

    def abandon(self) -> None:
        """End it: the code did not run."""
        if self._runs is not None:
            self._runs.finish()
        if self._view is not None:
            self._view.end()

    def deliver(
        self, status: Literal["ok", "error", "interrupted"]
    ) -> Profile | TraceError:
        """End it, show the report and hand it in; give it, or why there is none."""
        runs, view = self._runs, self._view
        if runs is None or view is None:
            problem = self._problem or NotProfiled("It did not begin.")
            display(Notice(f"No profile of this code: {problem}"))
            return problem
        typical = runs.finish(failed=status != "ok")
        view.end()
        live = runs.view()
        outcome: Profile | TraceError
        if typical is None:
            outcome = NotProfiled(" ".join(words(live)))
            display(Notice(f"No window of this code was profiled. {outcome}"))
        else:
            run = typical.recorded.run
            window_ms = (run.start_ns / 1e6, run.end_ns / 1e6)
            outcome = Profile(typical.figures, self._title, window_ms, _gpus(typical))
            outcome.live = live
            if self._shell is not None:
                outcome.report_id = self._id
            outcome.notes = (
                *words(live),
                "The figures are those of the window after "
                f"{(window_ms[0] - runs.started_ms) / 1e3:.1f} s.",
            )
            if not self._quiet:
                display(outcome)
        if self._shell is not None:
            self._post_last(live, status, typical, outcome)
        return outcome

    def _post_running(self, live: Live) -> None:
        """Hand in how it stands; called by the thread that tells about it.

        Raises:
            LinkError: the server did not take it.
        """
        newest = None if self._runs is None else self._runs.newest
        # of what runs still the next is handed in soon
        with contextlib.suppress(NotKept):
            self._link.post(self._report(live, "running", newest))

    def _post_last(
        self,
        live: Live,
        status: _Status,
        typical: WindowProfile | None,
        outcome: Profile | TraceError,
    ) -> None:
        report = self._report(live, status, typical)
        events = run = None
        if isinstance(outcome, Profile) and typical is not None:
            events, run = typical.recorded.events, typical.recorded.run
            report = replace(
                report,
                gpus=outcome.gpus,
                notes=outcome.notes,
                timeline_events=timelines.count(events, run),
            )
        _, problem = hand_in(self._link, report, events, run)
        if problem:
            display(Notice(problem))

    def _report(
        self, live: Live, status: _Status, profiled: WindowProfile | None
    ) -> CellReport:
        started_ms = 0.0 if self._runs is None else self._runs.started_ms
        return CellReport(
            id=self._id,
            protocol=PROTOCOL_VERSION,
            kernel_id=kernel_id(self._shell),
            notebook=notebook_path(),
            cell_id=self._cell_id,
            execution_count=self._execution_count,
            title=self._title,
            started_ms=started_ms,
            ended_ms=started_ms + live.elapsed_ns / 1e6,
            status=status,
            profile=_nothing(live) if profiled is None else profiled.figures,
            live=live,
        )


def _gpus(profiled: WindowProfile) -> tuple[str, ...]:
    """Give the UUIDs of the GPUs that worked."""
    devices = sorted(set(profiled.recorded.events.device.tolist()))
    uuids = [gpu_uuid(device) for device in devices if device >= 0]
    return tuple(uuid for uuid in uuids if uuid is not None)


def _nothing(live: Live) -> CellProfile:
    """Stand for a profile before there is a window: every figure is unknown."""
    return CellProfile(
        verdict=None,
        findings=(),
        metrics=None,
        wall_ns=live.elapsed_ns,
        profiler_ns=live.overhead_ns,
        first_start_ns=None,
        gpu_name=None,
        gpu_busy_ns=None,
        kernel_calls=None,
        kernel_time_ns=None,
        copy_time_ns=None,
        launches=None,
        launch_api_ns=None,
        synchronizations=None,
        synchronization_ns=None,
        peak_allocated_bytes=None,
        peak_reserved_bytes=None,
        kernels=(),
        copies=(),
        operators=(),
        names=(),
        lanes=(),
        completeness=Completeness(0, 0, 0, ("No window has been profiled.",)),
    )


_PERIOD_S = 1.0
#: while a window waits for a moment in which it can be given up
_STALE_PERIOD_S = 0.02
#: without a new window; a view that hears nothing for longer says so
_HEARTBEAT_S = 10.0
#: a report that is on its way at the end must come before the last one
_AT_END_S = 2.5


class LiveView:
    """Tells about a live profile while its cell runs: a line, and the dashboard.

    A thread looks once a second. Nothing is queued: each report holds all windows, so
    one that the server is too slow for is left out without a loss.
    """

    def __init__(
        self,
        runs: LiveRuns,
        output: LateOutput | None,
        post: Callable[[Live], None] | None,
    ) -> None:
        """Begin to report.

        Args:
            runs: whose reports are sent.
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
