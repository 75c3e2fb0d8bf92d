"""A learner's functions of ranks, in a process for each of two GPUs, over NCCL.

pytest -m two_gpus -s tests/gpu/test_parallelism_by_hand.py

A grader runs ranks on the CPU, with a GPU or without.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.labs.given_cells import ran
from warpbook_labs.course.session import find

pytestmark = pytest.mark.two_gpus

OVER_NCCL = """
import given, json
measured = given.measure(2, tokens=4096, hidden=2048, inner=8192)
print(given.table(measured))
print(json.dumps(measured))
"""


@pytest.mark.parametrize("solution", ["reference.py", "by_send_and_receive.py"])
def test_two_ranks_over_nccl_have_the_results_of_one_device(
    tmp_path: Path, solution: str
) -> None:
    source = find("parallelism-by-hand").correct.get(solution, "")
    measured = ran("parallelism-by-hand", tmp_path, OVER_NCCL, source)
    assert (measured["backend"], measured["ranks"]) == ("nccl", 2)
    functions = ["tensor_parallel", "sequence_parallel", "data_parallel"]
    assert list(measured["results"]) == functions
    for name, result in measured["results"].items():
        assert result["error"] < 1e-4, name
        assert 0 < result["sent_bytes"] <= result["enough_bytes"], name
