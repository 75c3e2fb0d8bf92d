"""A day of a real GPU in minutes: live frames, written with a clock that runs faster.

    python -m tests.gpu.archive_child FOLDER BEGIN_MS FACTOR

Each frame of the sampler is written `FACTOR` times, 100 ms of the archive's clock
apart.
What the archive acknowledges is printed when it is on disk: `record ID`.
What was handed to the history is printed when it was: `frame UNIX_S TIME_MS`.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from concurrent.futures import Future
from pathlib import Path

from msgspec.structs import replace

from warpbook_monitors.archive import archive as archive_module
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.record import KeptRecord
from warpbook_monitors.archive.records import put
from warpbook_monitors.frames import Frame
from warpbook_monitors.history.history import Message
from warpbook_monitors.open_sources import live_sources
from warpbook_monitors.sampling.sampler import Sampler

PERIOD_MS = 100.0


class Day:
    """Writes frames and records until the process is killed."""

    def __init__(self, folder: Path, begin_ms: float, factor: int) -> None:
        # two seconds of them: more than is usually held while a disk hangs
        archive_module._MOST_WAITING = 20 * factor * 10
        self._limits = Limits(frames_ms=1e14, summaries_ms=1e14)
        self._archive = Archive(folder, self._limits)
        self._time_ms = begin_ms
        self._seq = 0
        self._factor = factor
        self._sampler = Sampler(live_sources())

    def run(self) -> None:
        self._archive.start()
        self._sampler.open()
        self._sampler.listen(self._take)
        with self._sampler.watch("a day"):
            while True:
                time.sleep(0.05)
                self._keep_record()

    def _take(self, message: Message) -> None:
        if not isinstance(message, Frame):
            return
        for _ in range(self._factor):
            self._seq += 1
            self._time_ms += PERIOD_MS
            frame = replace(message, seq=self._seq, time_ms=self._time_ms)
            self._archive.append(frame, self._sampler.devices)
        say(f"frame {time.time():.3f} {self._time_ms:.3f}")

    def _keep_record(self) -> None:
        record = KeptRecord(
            "report",
            f"r-{time.time_ns()}",
            self._time_ms,
            self._time_ms + 1,
            "day.ipynb",
            "kernel",
            "cell",
            "a cell",
            "launch_bound",
            "ok",
            "It waits for the host.",
        )

        def keep(connection: sqlite3.Connection) -> None:
            put(connection, record, b'{"type":"cell_report"}', "child", self._limits)

        def acknowledge(future: Future[None]) -> None:
            if future.exception() is None:
                say(f"record {record.id}")

        self._archive.write(keep).add_done_callback(acknowledge)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Day(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])).run()
