"""`python -m warpbook_hub.grader.cluster.trial ADDRESS TOKEN_FILE`: what it offers.

It joins a cluster as a grader does, and leaves it. It prints what it found as JSON.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct

from warpbook_hub.grader.cluster import settings


class ClusterTrial(Struct, frozen=True):
    """What a grader on a cluster would find."""

    #: why it can't be joined, and what to do; empty: it was joined
    problem: str = ""
    cpu_slots: int = 0
    gpus: int = 0


def tried(address: str, token_file: Path) -> ClusterTrial:
    if find_spec("ray") is None:
        return ClusterTrial(f"There is no Ray here. {settings.EXTRA}")
    try:
        settings.use(token_file)
    except (OSError, ValueError) as problem:
        return ClusterTrial(str(problem))
    # Ray reads its settings as it is imported
    from warpbook_hub.grader.cluster import pool as pools

    try:
        pool = pools.RayPool(address)
    except pools.NoCluster as problem:
        return ClusterTrial(str(problem))
    places = pool.places()
    pool.close()
    return ClusterTrial("", places.cpu_slots, len(places.devices))


def main() -> int:
    """Try, and write what came of it as JSON."""
    trial = tried(sys.argv[1], Path(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(trial))
    return 0


if __name__ == "__main__":
    sys.exit(main())
