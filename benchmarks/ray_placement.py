"""What Ray adds to a job and how long its losses take, on a real cluster of two nodes.

    python -m benchmarks.ray_placement [--jobs 30] [--write]

The nodes are of this machine. With `--write` the times go to `ray_placement.json`,
with the machine and the date; `benchmarks.cluster_class` simulates a large class by
them. It prints a Markdown table.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import msgspec
from msgspec import Struct

from benchmarks.machine import describe_machine
from tests.hub.core.engine_conformance import order, wait_for_ends
from tests.hub.core.kills import STUB, begin, service_command
from tests.hub.core.started_hub import started
from tests.hub.ray.cluster import Cluster, clean_environment, cluster
from tests.programs import free_port, wait_for
from warpbook.hub_client import HubAway, HubClient
from warpbook.hub_protocol import GRADERS, Heartbeat, HeartbeatAnswer, Hello, Welcome
from warpbook_hub.grader.cluster import settings
from warpbook_hub.grader.job_run import Bounds

if TYPE_CHECKING:
    from warpbook_hub.grader.cluster.pool import RayPool

FILE = Path(__file__).with_name("ray_placement.json")
LOSSES, REQUESTS = 3, 50


class Placement(Struct, frozen=True):
    """Times of a real cluster, in ms."""

    #: date, processor, versions
    machine: str
    #: from a job's submit to its end being told, less the job's own time; one at a time
    around_ms: tuple[float, ...]
    #: of the driver's own thread for each submit; it submits one after the other
    submit_ms: tuple[float, ...]
    #: of a grader's request to the hub that asks for little
    request_ms: tuple[float, ...]
    #: from the kill of a node's raylet until its job is given up
    node_loss_ms: tuple[float, ...]
    #: from then until the node is offered again
    node_back_ms: tuple[float, ...]
    #: from the kill of the head until another driver has joined and a node is there
    head_back_ms: tuple[float, ...]


def read_placement() -> Placement:
    """Give the times that are kept."""
    return msgspec.json.decode(FILE.read_bytes(), type=Placement)


def main() -> None:
    """Measure, print a table, and keep the times where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as nodes:
        nodes.start_head()
        nodes.start_node(1, 1)
        nodes.start_node(2, 1, ("GPU-9",))
        placement = measured(nodes, options.jobs)
    print(
        f"{placement.machine}\n\n| what, ms | median | largest |\n| --- | --- | --- |"
    )
    for what in placement.__struct_fields__[1:]:
        times_ms = getattr(placement, what)
        median_ms, most_ms = statistics.median(times_ms), max(times_ms)
        print(f"| {what} ({len(times_ms)}) | {median_ms:.1f} | {most_ms:.1f} |")
    if options.write:
        FILE.write_bytes(msgspec.json.format(msgspec.json.encode(placement)) + b"\n")


def measured(nodes: Cluster, jobs: int) -> Placement:
    """Measure all on a cluster."""
    settings.use(nodes.token_file)
    # Ray reads its settings as it is imported
    pools = import_module("warpbook_hub.grader.cluster.pool")
    pool: RayPool = pools.RayPool(nodes.address, Bounds(), (sys.executable, str(STUB)))
    wait_until_there(pool)
    around_ms, submit_ms = [], []
    for number in range(jobs + 2):
        begun_s = time.perf_counter()
        pool.submit(order("// right", f"job{number}"))
        submitted_s = time.perf_counter()
        [ended] = wait_for_ends(pool, 1)
        assert ended.how == "done"
        # the first on each node import what is graded with
        if number >= 2:
            took_ms = (time.perf_counter() - begun_s) * 1000
            around_ms.append(round(took_ms - ended.took_ms, 1))
            submit_ms.append(round((submitted_s - begun_s) * 1000, 2))
    loss_ms, back_ms = [], []
    for number in range(LOSSES):
        pool.submit(order("// slow 60", f"lost{number}", stage="gpu", device="GPU-9"))
        wait_for("the job", lambda: nodes.runs("node2", STUB.name) or None)
        begun_s = time.perf_counter()
        nodes.kill("node2", "/raylet/raylet")
        wait_for_ends(pool, 1)
        lost_s = time.perf_counter()
        wait_for("its loss", lambda: not pool.places().devices or None)
        wait_until_there(pool)
        loss_ms.append(round((lost_s - begun_s) * 1000))
        back_ms.append(round((time.perf_counter() - lost_s) * 1000))
    pool.close()
    requests_ms = request_times_ms(nodes.folder)
    heads_ms = tuple(head_back_ms(nodes) for _ in range(LOSSES))
    return Placement(
        describe_machine(),
        tuple(around_ms),
        tuple(submit_ms),
        requests_ms,
        tuple(loss_ms),
        tuple(back_ms),
        heads_ms,
    )


def request_times_ms(folder: Path) -> tuple[float, ...]:
    """Send heartbeats of a grader without jobs to a service of its own."""
    room, [token] = begin(folder, 1, 1)
    port = free_port()
    with started(service_command(room, port), folder / "service.log"):
        client = HubClient(f"http://127.0.0.1:{port}", token, GRADERS)

        def greeted() -> Welcome | None:
            with contextlib.suppress(HubAway):
                return client.ask("hello", Welcome, Hello(1))
            return None

        wait_for("the service", greeted)
        times_ms = []
        for _ in range(REQUESTS):
            begun_s = time.perf_counter()
            client.ask("heartbeat", HeartbeatAnswer, Heartbeat(()))
            times_ms.append(round((time.perf_counter() - begun_s) * 1000, 2))
    room.database.close()
    return tuple(times_ms)


def head_back_ms(nodes: Cluster) -> float:
    """Kill the head, and join anew until a node is offered."""
    begun_s = time.perf_counter()
    nodes.kill("head", "gcs_server")

    def joined() -> bool | None:
        # a driver of its own, as the supervisor starts one
        command = [sys.executable, "-m", "warpbook_hub.grader.cluster.trial"]
        stdout = subprocess.run(
            [*command, nodes.address, str(nodes.token_file)],
            env=clean_environment(),
            capture_output=True,
        ).stdout
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(stdout)["gpus"] or None
        return None

    wait_for("the cluster", joined, 180)
    return round((time.perf_counter() - begun_s) * 1000)


def wait_until_there(pool: RayPool) -> None:
    """Wait until both nodes are offered."""

    def are_there() -> bool | None:
        places = pool.places()
        return (places.cpu_slots == 2 and len(places.devices) == 1) or None

    wait_for("both nodes", are_there, 90)


if __name__ == "__main__":
    main()
