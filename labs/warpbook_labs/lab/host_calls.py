"""The inputs of every call in a case on host code."""

from __future__ import annotations

import numpy as np

from warpbook_labs.lab.spec import Lab


def generator_of(seed: int, call: int) -> np.random.Generator:
    """Give the source of chance of one call; the first has that of a kernel's case."""
    return np.random.default_rng((seed, call) if call else seed)


def calls_of(lab: Lab) -> int:
    """Say how many calls a case has, each with inputs of its own."""
    return lab.host.calls if lab.host is not None else 1
