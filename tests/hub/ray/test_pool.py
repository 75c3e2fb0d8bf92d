"""The engine on a real Ray cluster does what every engine has to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hub.core.engine_conformance import (
    EngineConformance,
    order,
    wait_for_ends,
)
from tests.hub.core.kills import STUB
from tests.hub.ray.cluster import Cluster, clean_environment
from tests.programs import wait_for
from warpbook.hub.grader.cluster import settings
from warpbook.hub.grader.job_run import Bounds

if TYPE_CHECKING:
    from warpbook.hub.grader.cluster.pool import RayPool

COMMAND = (sys.executable, str(STUB))
#: both nodes'
SLOTS = 2


@pytest.fixture
def join(ray_cluster: Cluster) -> Iterator[Callable[..., RayPool]]:
    """Join the cluster once both nodes are there; what was joined is left."""
    settings.use(ray_cluster.token_file)
    # Ray reads its settings as it is imported
    module = import_module("warpbook.hub.grader.cluster.pool")
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
    grader = [sys.executable, "-m", "warpbook.hub.grader", "http://127.0.0.1:1"]
    grader += ["--engine", "ray", "--ray-address", ray_cluster.address]
    done = subprocess.run(
        [*grader, "--ray-token-file", str(other)],
        input="a hub's token\n",
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "the same token" in done.stderr
