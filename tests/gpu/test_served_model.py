"""A small decoder served on a GPU: static, dynamic and in-flight batches, as a table.

pytest -m gpu -s tests/gpu/test_served_model.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.given_cells import ran

pytestmark = pytest.mark.gpu

CELL = """
import given, json
measured = given.measure()
print(given.table(measured))
print(json.dumps(measured))
"""
EXACT = """
import given, json, torch
print(json.dumps(given.measure(size=given.ON_CPU, dtype=torch.float64)))
"""


def test_the_same_requests_are_served_three_ways(tmp_path: Path) -> None:
    measured = ran("continuous-batching", tmp_path, CELL)
    assert measured["device"] == "cuda"
    runs = measured["runs"]
    assert list(runs) == ["static", "dynamic", "in-flight"]
    assert len({run["tokens"] for run in runs.values()}) == 1
    assert {run["free_blocks"] for run in runs.values()} == {1024}


def test_in_64_bits_all_three_write_the_same(tmp_path: Path) -> None:
    assert ran("continuous-batching", tmp_path, EXACT)["same"] == 1
