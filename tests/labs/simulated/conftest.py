"""The small lab on host code, in both ways to be checked without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.simulated.sample_lab import write_lab
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load


@pytest.fixture
def on_torch(tmp_path: Path) -> LoadedLab:
    return load(write_lab(tmp_path))


@pytest.fixture
def simulated(tmp_path: Path) -> LoadedLab:
    return load(write_lab(tmp_path, "simulated", "pinned"))
