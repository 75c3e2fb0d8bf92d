"""A Ray cluster that tests of a file share: two nodes with a CPU slot and GPUs each."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.hub.ray.cluster import Cluster, cluster


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    environment = dict(os.environ)
    with cluster(tmp_path_factory.mktemp("ray")) as begun:
        begun.start_head()
        begun.start_node(1, 1, ("GPU-7", "GPU-8"))
        begun.start_node(2, 1, ("GPU-9",))
        yield begun
    os.environ.clear()
    os.environ.update(environment)
