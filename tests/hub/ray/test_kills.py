"""Parts of a real cluster are killed while a class hands in: each is graded once.

What a cluster does with a job decides nothing: the hub's lease and its fence do.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from sqlalchemy import func, select

from tests.hub.core.course import Classroom
from tests.hub.core.kills import (
    STUB,
    Restarted,
    Tally,
    begin,
    hand_in,
    judge,
    open_jobs,
    retry_parked,
    service_command,
)
from tests.hub.ray.cluster import Cluster, cluster
from tests.programs import free_port, wait_for
from warpbook_hub.database.tables import RESULTS

pytestmark = pytest.mark.ray
#: few, so that what waits at the end is graded soon
LEARNERS = 4
#: after each kill so many results come before the next
PROGRESS = 2
#: longer than a driver may be held up on a busy machine
LEASE_S = 10.0


@dataclass
class Class:
    """A class that hands in, and the cluster that grades it."""

    room: Classroom
    cluster: Cluster
    driver: Restarted

    def wait_for_a_job_on(self, node: str) -> None:
        """Wait until a node grades."""
        wait_for(
            f"a job on {node}", lambda: self.cluster.runs(node, STUB.name) or None, 120
        )

    def wait_for_results(self) -> None:
        """Wait until grading goes on."""
        before = self._results()
        wait_for("results", lambda: self._results() >= before + PROGRESS or None, 120)

    def _results(self) -> int:
        with self.room.database.read() as connection:
            count = select(func.count()).select_from(RESULTS)
            return int(connection.execute(count).scalar_one())


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as begun:
        begun.start_head()
        begun.start_node(1, 1, ("GPU-7",))
        begun.start_node(2, 1, ("GPU-8",))
        yield begun


def kill_worker(nodes: Cluster) -> None:
    """Kill the process of Ray that runs a job, and not what it has started."""

    def killed() -> bool | None:
        for process in nodes.processes_of("node1"):
            with contextlib.suppress(psutil.Error):
                if process.name().startswith("ray::run_job"):
                    process.kill()
                    return True
        return None

    wait_for("a worker with a job", killed, 120)


def test_what_was_acknowledged_is_graded_once_whatever_of_ray_is_killed(
    nodes: Cluster, tmp_path: Path
) -> None:
    room, [token] = begin(tmp_path, LEARNERS, 1)
    tally, port, ended = Tally(), free_port(), threading.Event()
    url = f"http://127.0.0.1:{port}"
    grader = [sys.executable, "-m", "warpbook_hub.grader", url, "--engine", "ray"]
    grader += ["--ray-address", nodes.address, "--ray-token-file"]
    grader += [str(nodes.token_file), "--command", sys.executable, str(STUB)]
    hands = threading.Thread(target=hand_in, args=(room, url, tally, ended))
    with contextlib.ExitStack() as stack:
        stack.enter_context(Restarted(service_command(room, port, LEASE_S)))
        class_ = Class(room, nodes, stack.enter_context(Restarted(grader, token)))
        hands.start()
        # whatever happens, the thread ends
        stack.callback(hands.join)
        stack.callback(ended.set)
        class_.wait_for_results()
        kill_worker(nodes)
        class_.wait_for_results()
        class_.wait_for_a_job_on("node2")
        assert nodes.kill("node2", "/raylet/raylet")
        class_.wait_for_results()
        class_.wait_for_a_job_on("node1")
        assert nodes.kill("head", "gcs_server")
        # its command starts it anew; nodes and driver come back to it
        class_.wait_for_results()
        class_.wait_for_a_job_on("node2")
        class_.driver.kill()
        class_.wait_for_results()
        nodes.start_node(3, 1, ("GPU-9",))
        class_.wait_for_a_job_on("node3")
        ended.set()
        hands.join()
        end_s = time.monotonic() + 180
        while open_jobs(room) and time.monotonic() < end_s:
            retry_parked(room, tally)
            time.sleep(0.3)
    judge(room, tally)
    room.database.close()
    assert len(tally.acknowledged) >= 5 * PROGRESS and tally.timed
    assert (tally.lost, tally.wrong) == ([], [])
