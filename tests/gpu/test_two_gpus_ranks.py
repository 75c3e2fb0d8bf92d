"""What labs of several GPUs measure over NCCL, as tables.

Needs two GPUs that are linked by NVLink: `pytest -m two_gpus -s tests/gpu`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.given_cells import ran

pytestmark = pytest.mark.two_gpus

COLLECTIVES = """
import given, json
measured = given.measure(2, sizes_bytes=(*given.SIZES_BYTES, 1 << 28))
print(given.table(measured))
print(json.dumps(measured))
"""
PLANS = """
import given, json
model = {"layers": 2, "hidden": 2048, "heads": 16, "kv_heads": 8, "head_size": 128,
         "intermediate": 8192, "vocabulary": 32000, "sequence": 1024}
results = given.measure(2, model=model, batch=8)
print(given.table(results))
print(json.dumps(results))
"""
PIPELINE = """
import given, json
results = given.measure(2)
print(given.table(results))
print(json.dumps(results))
"""


def test_schedules_of_a_learner_sum_up_over_nccl(tmp_path: Path) -> None:
    measured = ran("collectives", tmp_path, COLLECTIVES)
    assert measured["right"] == ["ring", "tree", "halving_doubling"]
    assert measured["link"]["kind"] == "NVLink"
    largest = measured["rows"][-1]
    # of two ranks the bus carries the buffer once each way, which no link exceeds
    most = measured["link"]["bytes_per_s"]
    for name in (*measured["right"], "all_reduce"):
        assert 0 < largest["size_bytes"] / largest[name] < most, name
    assert 0 < 1 / measured["beta_s_per_byte"] < most


def test_split_layers_equal_one_gpu(tmp_path: Path) -> None:
    results = ran("parallel-plans", tmp_path, PLANS)
    norms = 2 * 2048 * 2 * 2
    for kind, result in results.items():
        assert result["error"] < 1e-4, kind
        extra = norms if kind == "sequence" else 0
        assert result["sent_bytes"] == result["predicted_bytes"] + extra, kind


def test_stages_of_a_pipeline_have_the_gradients_of_one_gpu(tmp_path: Path) -> None:
    results = ran("pipeline-schedules", tmp_path, PIPELINE)
    assert list(results) == ["gpipe", "one_f_one_b", "interleaved", "capped"]
    held = [result["held"] for result in results.values()]
    assert held == [8, 2, 2.5, 1]
    for name, result in results.items():
        assert result["error"] < 1e-4, name
