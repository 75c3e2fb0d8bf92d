"""The engine on a real Ray cluster does what every engine has to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hub.core.engine_conformance import EngineConformance, order, wait_for_ends
from tests.hub.core.kills import STUB
from tests.hub.ray.cluster import Cluster, clean_environment
from tests.programs import wait_for
from warpbook_hub.grader.cluster import settings
from warpbook_hub.grader.job_run import Bounds

if TYPE_CHECKING:
    from warpbook_hub.grader.cluster.pool import RayPool

pytestmark = pytest.mark.ray
COMMAND = (sys.executable, str(STUB))
#: both nodes'
SLOTS = 2


@pytest.fixture
def join(ray_cluster: Cluster) -> Iterator[Callable[..., RayPool]]:
    """Join the cluster once both nodes are there; what was joined is left."""
    settings.use(ray_cluster.token_file)
    # Ray reads its settings as it is imported
    module = import_module("warpbook_hub.grader.cluster.pool")
    pools: list[RayPool] = []

    def joined(bounds: Bounds, **options: object) -> RayPool:
        pool: RayPool = module.RayPool(ray_cluster.address, bounds, COMMAND, **options)
        pools.append(pool)
        wait_for(
            "both nodes", lambda: pool.places().cpu_slots == SLOTS or None, seconds=60
        )
        return pool

    yield joined
    for pool in pools:
        pool.close()


@pytest.fixture
def engine(join: Callable[..., RayPool]) -> RayPool:
    return join(Bounds(wall_s=120, memory_bytes=300 << 20))


@pytest.fixture
def impatient(join: Callable[..., RayPool]) -> RayPool:
    return join(Bounds(wall_s=2))


class TestRayPool(EngineConformance):
    pass


def test_a_job_for_a_gpu_that_is_not_there_does_not_wait(engine: RayPool) -> None:
    engine.submit(order("// right", stage="gpu", device="GPU-nowhere"))
    [ended] = wait_for_ends(engine, 1)
    assert ended.how == "no node" and "GPU-nowhere" in ended.message


def test_no_secret_of_ray_reaches_what_grades(engine: RayPool) -> None:
    engine.submit(order("// environment"))
    [ended] = wait_for_ends(engine, 1)
    assert "PYTHONPATH" in ended.message and "RAY" not in ended.message


def test_a_gang_has_all_its_gpus_on_one_machine(
    join: Callable[..., RayPool], tmp_path: Path
) -> None:
    pool = join(Bounds(), together=2)
    [gang] = pool.places().devices
    assert gang.uuid == "GPU-7,GPU-8" and gang.name == "2 x simulated"
    log = tmp_path / "log"
    pool.submit(order(f"// log {log}", stage="gpu", device=gang.uuid))
    [ended] = wait_for_ends(pool, 1)
    assert ended.how == "done" and log.read_text().split()[2] == gang.uuid


def test_gpus_of_another_kind_are_not_offered(join: Callable[..., RayPool]) -> None:
    assert join(Bounds(), accelerator="H100").places().devices == ()


def test_who_has_another_token_is_refused(ray_cluster: Cluster) -> None:
    other = ray_cluster.folder / "other_token"
    other.write_text("0" * 32)
    other.chmod(0o600)
    grader = [sys.executable, "-m", "warpbook_hub.grader", "http://127.0.0.1:1"]
    grader += ["--engine", "ray", "--ray-address", ray_cluster.address]
    done = subprocess.run(
        [*grader, "--ray-token-file", str(other)],
        input="a hub's token\n",
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "the same token" in done.stderr


def slow_on_gpu_9(engine: RayPool, ray_cluster: Cluster, seconds: int) -> None:
    """Begin a job on the second node, and wait until it runs there."""
    engine.submit(order(f"// slow {seconds}", stage="gpu", device="GPU-9"))
    wait_for(
        "the job", lambda: ray_cluster.node_of(STUB.name) == "node2" or None, seconds=30
    )


def wait_for_gpu_9(engine: RayPool) -> None:
    """Wait until the second node is there."""

    def is_there() -> bool | None:
        return "GPU-9" in [gpu.uuid for gpu in engine.places().devices] or None

    wait_for("the second node", is_there, seconds=60)


def test_a_killed_node_loses_its_job_and_comes_back(
    engine: RayPool, ray_cluster: Cluster
) -> None:
    slow_on_gpu_9(engine, ray_cluster, 60)
    assert ray_cluster.kill("node2", "/raylet/raylet")
    [ended] = wait_for_ends(engine, 1)
    assert ended.how == "crashed" and ended.outcome is None
    # a worker's end is known before that of its node is
    wait_for("its loss", lambda: engine.places().cpu_slots == 1 or None, seconds=30)
    wait_for_gpu_9(engine)
    engine.submit(order("// right", "next", stage="gpu", device="GPU-9"))
    [ended] = wait_for_ends(engine, 1)
    assert ended.how == "done"


def test_a_cut_off_node_is_given_up_and_its_late_result_bears_the_old_fence(
    engine: RayPool, ray_cluster: Cluster
) -> None:
    if not ray_cluster.has_networks:
        pytest.skip("A link is cut in a network of its own, which takes root and `ip`.")
    slow_on_gpu_9(engine, ray_cluster, 7)
    ray_cluster.cut(2)
    try:
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "crashed" and "lost" in ended.message
        engine.submit(order("// right", fence=2, stage="gpu", device="GPU-7"))
        [ended] = wait_for_ends(engine, 1)
        assert (ended.how, ended.lease.fence) == ("done", 2)
        wait_for(
            "its end there",
            lambda: True if not ray_cluster.node_of(STUB.name) else None,
            seconds=30,
        )
    finally:
        ray_cluster.heal(2)
    [late] = wait_for_ends(engine, 1)
    assert (late.how, late.lease.fence) == ("done", 1)
    wait_for_gpu_9(engine)
