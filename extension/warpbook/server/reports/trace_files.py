"""Trace files that people open: read and analysed in a process, one at a time."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from pathlib import Path

import msgspec

from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook.server.records.reports import Reports
from warpbook.server.records.timelines import Timelines
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.files.file_answer import Fault, Told
from warpbook_profiler.model.progress import TraceProgress

#: requests that wait for the one that is served
_MOST_WAITING = 8
_MOST_TITLE, _MOST_PROBLEM = 200, 400
#: what to do, by fault
_REMEDIES: dict[Fault, str] = {
    "not_a_trace": (
        "Choose a file of prof.export_chrome_trace(path), or an export of Nsight."
    ),
    "damaged": (
        "Copy the whole file again; if it was cut while it was written, record anew."
    ),
    "too_large": "Record fewer steps, or use warpbook analyze in a terminal.",
    "unreadable": "The account of this server must be allowed to read it: chmod +r.",
}

_decode = msgspec.msgpack.Decoder(Told).decode
_decode_progress = msgspec.json.Decoder(TraceProgress).decode
#: of a child's lines, which are short
_LINES_BYTES = 65_536
_QUEUED = TraceProgress("Waiting for other traces to be read")
_STARTING = TraceProgress("Starting to read the trace")


class NoReport(Exception):
    """Why a file has no report: a fault with a name, in words."""

    def __init__(self, fault: Fault | str, problem: str) -> None:
        super().__init__(problem)
        self.fault = fault


class TraceFiles:
    """Reports of trace files, for the event loop."""

    def __init__(
        self, reports: Reports, timelines: Timelines, max_bytes: int, max_s: float
    ) -> None:
        """Keep where reports go, and what one file may take.

        Args:
            reports: keeps them.
            timelines: keeps their events.
            max_bytes: of a file as it is on disk.
            max_s: to read and analyse it.
        """
        self._reports = reports
        self._timelines = timelines
        self._max_bytes = max_bytes
        self._max_s = max_s
        # each takes a core, and memory in proportion to its file
        self._reading = asyncio.Lock()
        self._waiting = 0
        #: by path, of each that somebody waits for
        self._progress: dict[str, TraceProgress] = {}

    async def report(self, path: str, file: Path) -> CellReport:
        """Give the report of a file; it is read again only if it changed.

        Args:
            path: how Jupyter names it.
            file: where it is.

        Raises:
            NoReport: it has none.
        """
        if self._waiting >= _MOST_WAITING:
            raise NoReport("busy", "Too many traces are being read; try again soon.")
        self._waiting += 1
        self._progress.setdefault(path, _QUEUED)
        try:
            async with self._reading:
                self._progress[path] = _STARTING
                return await self._made(path, file)
        finally:
            self._waiting -= 1
            self._progress.pop(path, None)

    def progress(self, path: str) -> TraceProgress:
        """Tell how far the report of a file is; no stage where nobody waits for it."""
        return self._progress.get(path, TraceProgress(""))

    async def _made(self, path: str, file: Path) -> CellReport:
        try:
            status = await asyncio.to_thread(os.stat, file)
        except OSError as problem:
            raise NoReport("unreadable", f"{problem.strerror or problem}.") from None
        if status.st_size > self._max_bytes:
            raise NoReport(
                "too_large",
                f"It has {status.st_size >> 20:,} MiB, and this server reads traces of "
                f"at most {self._max_bytes >> 20:,} MiB (WarpbookApp.trace_megabytes). "
                f"{_REMEDIES['too_large']}",
            )
        # another state of the file is another report
        state = f"{path}\0{status.st_mtime_ns}\0{status.st_size}"
        digest = hashlib.sha256(state.encode(errors="surrogatepass")).hexdigest()
        report_id = f"file-{digest[:32]}"
        report = self._reports.get(report_id)
        if report is not None and self._has_timeline(report):
            return self._reports.add_of_file(report)
        answer = await self._read(path, file)
        if answer.profile is None:
            fault = answer.fault or "unreadable"
            words = bounded(answer.problem, _MOST_PROBLEM)
            raise NoReport(fault, f"{words} {_REMEDIES[fault]}")
        saved_ms = status.st_mtime_ns / 1e6
        report = CellReport(
            id=report_id,
            protocol=PROTOCOL_VERSION,
            kernel_id="",
            notebook=None,
            cell_id=None,
            execution_count=None,
            title=bounded(file.name, _MOST_TITLE),
            started_ms=saved_ms,
            ended_ms=saved_ms,
            status="ok",
            profile=answer.profile,
            timeline_events=answer.timeline_events,
            file=path,
        )
        report = self._reports.add_of_file(report)
        if answer.timeline is not None:
            await self._timelines.add_of_file(report_id, answer.timeline)
        return report

    def _has_timeline(self, report: CellReport) -> bool:
        return report.timeline_events is None or self._timelines.has(report.id)

    async def _read(self, path: str, file: Path) -> Told:
        # not in the file's folder, whose modules a child would take for ours
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "warpbook_profiler.files.file_profile", str(file)),
            cwd=NOWHERE,
            env={**os.environ, "PYTHONPATH": own_path(), "OPENBLAS_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said = await asyncio.wait_for(self._answer(path, child), self._max_s)
        except asyncio.TimeoutError:
            raise NoReport(
                "too_slow",
                f"To read it takes more than {self._max_s:g} s "
                "(WarpbookApp.trace_seconds). Record fewer steps, or use "
                "warpbook analyze in a terminal.",
            ) from None
        finally:
            # what it started for parts of a large file goes with it
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        try:
            return _decode(said)
        except msgspec.MsgspecError:
            raise NoReport(
                "unreadable",
                "The process that read it ended without an answer; it may have run "
                "out of memory.",
            ) from None

    async def _answer(self, path: str, child: asyncio.subprocess.Process) -> bytes:
        """Return what a child writes, and keep how far it is meanwhile."""
        assert child.stdout and child.stderr
        answer = asyncio.ensure_future(child.stdout.read())
        try:
            while lines := await child.stderr.read(_LINES_BYTES):
                # the last line may not be whole
                whole = lines.rpartition(b"\n")[0].rpartition(b"\n")[2]
                with contextlib.suppress(msgspec.MsgspecError):
                    self._progress[path] = _decode_progress(whole)
            await child.wait()
            return await answer
        finally:
            answer.cancel()
