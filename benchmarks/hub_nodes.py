"""What the campus board takes: a report of a node, a backlog, and what its page asks.

    python -m benchmarks.hub_nodes [--nodes 20] [--postgres]

Each node has 8 GPUs with 3 holders each, and has told of a whole week. With
`--postgres` the database is one of a PostgreSQL server on this machine. It prints a
Markdown table of times in milliseconds, without HTTP and log-in.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

from benchmarks.hub_core import measured  # noqa: E402
from tests.hub.core.course import Classroom, classroom  # noqa: E402
from tests.hub.postgres import PostgresServer, remove  # noqa: E402
from warpbook.hub.nodes import campus, history, registry  # noqa: E402
from warpbook.hub.nodes.taking import HOUR_MS, MINUTE_MS, take  # noqa: E402
from warpbook_monitors.holders.node_protocol import (  # noqa: E402
    MOST_INTERVALS,
    GpuShare,
    Holder,
    HolderShare,
    Interval,
    Intervals,
    Workload,
)

GPUS, ACCOUNTS = 8, ("ada", "bob", "cyd")
REPORT_MS = 15_000


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if options.postgres:
            # a short path, as the server's socket is in it
            server_folder = Path(tempfile.mkdtemp(prefix="wb-pg-"))
            server = PostgresServer(server_folder)
            stack.callback(remove, server, server_folder)
            server.use_for(Path(folder, "hub.db"))
        room = classroom(Path(folder, "hub.db"))
        nodes = [Node(room, f"n{number}") for number in range(options.nodes)]
        now_ms = room.now_ms
        week = [now_ms - hour * HOUR_MS for hour in range(168)][::-1]
        hour = [now_ms - minute * MINUTE_MS for minute in range(60)][::-1]
        for node in nodes:
            node.tell([*week, *hour])
        print("| what | median ms | largest ms |\n| --- | --- | --- |")
        measured("a report of a node", lambda: nodes[0].tell([now_ms]))
        backlog = [now_ms - REPORT_MS * place for place in range(MOST_INTERVALS)]
        measured("a backlog of 20 reports", lambda: nodes[0].tell(backlog[::-1]))
        with room.database.read() as connection:
            for what, question in (
                ("the GPUs now", campus.campus),
                ("the last hour of each", history.hours),
                ("the week of each node", history.weeks),
                ("courses' energy", history.energy_of_courses),
            ):
                # bound now: each is asked before the next one is looked at
                measured(what, lambda ask=question: ask(connection, now_ms))
        room.database.close()


class Node:
    """Tells of times."""

    def __init__(self, room: Classroom, name: str) -> None:
        """Register it."""
        self._room, self._number, self._name = room, 0, name
        with room.database.write() as connection:
            token = registry.register(connection, room.now_ms, "hub", name)
            self._id = registry.authenticate(connection, token)

    def tell(self, ends_ms: Sequence[int]) -> None:
        """Tell of intervals that ended so, oldest first."""
        for first in range(0, len(ends_ms), MOST_INTERVALS):
            batch = ends_ms[first : first + MOST_INTERVALS]
            intervals = tuple(self._interval(end_ms) for end_ms in batch)
            message = Intervals(self._room.now_ms, 0, intervals)
            with self._room.database.write() as connection:
                take(connection, self._room.now_ms, self._id, message)

    def _interval(self, end_ms: int) -> Interval:
        self._number += 1
        gpus = tuple(_gpu(f"GPU-{self._name}-{place}", place) for place in range(GPUS))
        return Interval("a" * 32, self._number, end_ms - REPORT_MS, end_ms, gpus)


def _gpu(uuid: str, place: int) -> GpuShare:
    shares = tuple(
        HolderShare(
            Holder(1000 + number, account, "", Workload("slurm", str(number))),
            *(1, 1 << 30, REPORT_MS, 3000, 1000, None, True),
        )
        for number, account in enumerate(ACCOUNTS)
    )
    return GpuShare(
        *(uuid, place, "H100", "ok", "", REPORT_MS, 9000, 6000, 3000, 3000),
        *(1 << 30, 80 << 30, None, True, shares),
    )


if __name__ == "__main__":
    main()
