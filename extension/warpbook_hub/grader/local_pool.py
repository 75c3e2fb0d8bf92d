"""The engine of one machine: a process for each job, bounded in time and memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence

from warpbook.hub_protocol import JobOrder
from warpbook_hub.grader.engine import JobEnd, Places, taken
from warpbook_hub.grader.job_run import COMMAND, Bounds, JobRun
from warpbook_hub.grader.processes import Spares


class LocalPool:
    """Runs each job in a process of this machine, which ends with this one."""

    def __init__(
        self,
        bounds: Bounds | None = None,
        command: Sequence[str] | None = None,
        keeps_spares: bool | None = None,
        places: Places | None = None,
    ) -> None:
        """Begin with nothing that runs.

        Args:
            bounds: of each job.
            command: what grades a job; it reads an order and writes an outcome.
            keeps_spares: has the next job's process of each GPU start before the job
                is there; if left out, where `command` is ours.
            places: what of this machine it may use.
        """
        self._bounds = bounds or Bounds()
        self._command = command or COMMAND
        self._places = places or Places()
        has_spares = command is None if keeps_spares is None else keeps_spares
        self._spares = Spares(self._command) if has_spares else None
        self._lock = threading.Lock()
        self._running: dict[str, _Run] = {}
        # SimpleQueue.get waits without end once a signal's handler outlasts its timeout
        self._ended: queue.Queue[JobEnd] = queue.Queue()

    def places(self) -> Places:
        return self._places

    def submit(self, order: JobOrder) -> None:
        """Begin a job; the same lease once more changes nothing."""
        with self._lock:
            before = self._running.get(order.job)
            if before is not None and before.job.order.fence >= order.fence:
                return
            spare = self._spares.take(order.device) if self._spares else None
            job = JobRun(order, self._bounds, self._command, spare)
            run = _Run(job, self._tell)
            self._running[order.job] = run
        if before is not None:
            before.job.cancel()
        run.start()
        if self._spares:
            self._spares.prepare(order.device, order.lab)

    def cancel(self, job: str) -> None:
        """End a job and all that it started; one that is not there is passed over."""
        with self._lock:
            run = self._running.get(job)
        if run is not None:
            run.job.cancel()

    def ended(self, wait_s: float) -> list[JobEnd]:
        """Give what has ended since it was asked last; each is told once."""
        return taken(self._ended, wait_s)

    def close(self) -> None:
        with self._lock:
            runs = list(self._running.values())
        for run in runs:
            run.job.cancel()
        for run in runs:
            run.join()
        if self._spares:
            self._spares.close()

    def _tell(self, run: _Run, ended: JobEnd) -> None:
        with self._lock:
            if self._running.get(run.job.order.job) is run:
                del self._running[run.job.order.job]
        self._ended.put(ended)


class _Run(threading.Thread):
    """A job beside others."""

    def __init__(self, job: JobRun, tell: Callable[[_Run, JobEnd], None]) -> None:
        super().__init__(name=f"warpbook-job-{job.order.job}", daemon=True)
        self.job, self._tell = job, tell

    def run(self) -> None:
        self._tell(self, self.job.ended())
