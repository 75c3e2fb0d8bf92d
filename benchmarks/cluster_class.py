"""A simulated class of 10,000 on 200 GPUs of 50 nodes, with the hub's real queue code.

    python -m benchmarks.cluster_class [--learners N] [--nodes N] [--within-min N]...
        [--losses] [--postgres]

Receipts, leases, heartbeats and results are the hub's own functions on a real database.
Time is simulated: a write takes as long as it took here, one after the other as the
hub's writer has it, and a job takes what `ray_placement.json` says of a real cluster
beside its own length. More and more hand in as the deadline comes near. With `--losses`
a node is lost each minute, and the head once. It prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

from benchmarks.machine import describe_machine
from benchmarks.ray_placement import read_placement
from benchmarks.simulated_class import MINUTE_MS, Size
from benchmarks.simulated_hub import SimulatedHub
from tests.hub.core.course import classroom
from tests.hub.postgres import PostgresServer, remove


def main() -> int:
    """Simulate each case, and print a row of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--within-min", type=float, action="append", default=[])
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    print(f"{describe_machine()} Placement: {read_placement().machine}\n")
    cases = options.within_min or [10.0]
    columns: list[dict[str, str]] = []
    for within_min in cases:
        size = Size(options.learners, options.nodes, within_min, options.losses)
        with begun(size, options.postgres) as hub:
            begin_s = time.perf_counter()
            hub.run()
            took_s = time.perf_counter() - begin_s
            columns.append({**column_of(hub), "simulated in, s": f"{took_s:.0f}"})
            if hub.unfinished():
                print(f"{hub.unfinished()} submissions have no result.")
                return 1
    heads = " | ".join(f"within {within_min:g} min" for within_min in cases)
    print(f"| all hand in | {heads} |\n| --- {'| ---: ' * len(cases)}|")
    for what in columns[0]:
        print(f"| {what} | {' | '.join(column[what] for column in columns)} |")
    return 0


@contextlib.contextmanager
def begun(size: Size, on_postgres: bool):
    """Give a hub with everybody in its roster."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        database = Path(folder, "hub.db")
        if on_postgres:
            # a short path, as the server's socket is in it
            server_folder = Path(tempfile.mkdtemp(prefix="wb-pg-"))
            server = PostgresServer(server_folder, flushes=True)
            stack.callback(remove, server, server_folder)
            server.use_for(database)
        room = classroom(database)
        stack.callback(room.database.close)
        yield SimulatedHub(room, size, read_placement())


def column_of(hub: SimulatedHub) -> dict[str, str]:
    """Give what came of it, by names."""
    works = hub.works
    firsts = [w.result_ms - w.handed_ms for w in works if w.attempt == 1]
    others = [w.result_ms - w.handed_ms for w in works if w.attempt > 1]
    size = hub.size
    busy = {
        "database's writer": percent(hub.writer_busy_ms, MINUTE_MS),
        "driver": percent(hub.driver_busy_ms, MINUTE_MS),
        "CPU slots": percent(hub.slot_busy_ms, size.slots * MINUTE_MS),
        "GPUs": percent(hub.gpu_busy_ms, size.gpus * MINUTE_MS),
    }
    return {
        "submissions": f"{len(works):,}",
        "wait for a receipt, ms: median, 95 %": spread(
            [w.received_ms - w.handed_ms for w in works], 1
        ),
        "from a first attempt to its whole result, s: median, 95 %": spread(
            firsts, 1000
        ),
        "the same of a second or third attempt": spread(others, 1000),
        "overtaken among first attempts, s, largest": (
            f"{hub.overtaken_ms() / 1000:.1f}"
        ),
        **{
            f"{what} busy in its busiest minute, %": f"{busy[what]:.0f}"
            for what in busy
        },
        "what is busiest": max(busy, key=lambda what: busy[what]),
        "writes of the database": f"{hub.writes:,}",
        "results refused": f"{hub.refused}",
        "jobs given up": f"{hub.lost}",
    }


def percent(busy_ms: Counter[int], of_ms: float) -> float:
    """Give the share of the busiest minute."""
    return 100 * max(busy_ms.values(), default=0) / of_ms


def spread(times_ms: list[float], unit_ms: float) -> str:
    """Give median and 95th percentile."""
    if len(times_ms) < 2:
        return "-"
    cuts = quantiles(times_ms, n=20)
    return f"{median(times_ms) / unit_ms:.1f}, {cuts[-1] / unit_ms:.1f}"


if __name__ == "__main__":
    sys.exit(main())
