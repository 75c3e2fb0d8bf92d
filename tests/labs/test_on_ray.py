"""What labs show of Ray Tune, Ray Serve and Lightning on Ray, run on a real Ray."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.labs.given_cells import ran
from tests.programs import python_path

pytestmark = pytest.mark.ray

SEARCHES = """
import given, json
measured = given.measure(trials=6)
print(given.table(measured))
print(json.dumps(measured))
"""
BATCHES = """
import given, json
measured = given.measure(models=2, slots=1, load=0.2, requests=60)
print(given.table(measured))
print(json.dumps(measured))
"""
RAISES = "def batch(server, state):\n    raise ValueError('no batch today')\n"
FAILING_BATCH = """
import given, json
try:
    given.measure(models=2, slots=1, load=0.2, requests=4)
except Exception as problem:
    print(json.dumps(str(problem)))
"""
WAITS = "def search(cluster, state):\n    return {}\n"
FAILING_SEARCH = """
import given, json
problems = []
for _ in range(2):
    try:
        given.measure(trials=2)
    except ValueError as problem:
        # as a notebook keeps it, with all that its frames hold
        problems.append(problem)
print(json.dumps([str(problem) for problem in problems]))
"""
PASSAGE = """
import sys
import ray
from benchmarks.passages import run_passage
ray.init("local", include_dashboard=False)
run_passage(sys.argv[1], sys.argv[2])
"""
LIGHTNING = """
import ray
from benchmarks.passages import run_passage
ray.init("local", include_dashboard=False)
lab = "tune-on-a-budget"
names = run_passage(lab, "import os\\n\\nimport lightning")
run_passage(lab, "from ray.train import FailureConfig", **names)
"""
WORKERS = """
import sys
from pathlib import Path
import ray
from benchmarks import ray_lightning
ray.init("local", include_dashboard=False)
right, _ = ray_lightning.by_one_process(3)
kills = {1: 0.0, 2: ray_lightning.LONG_S}
run = ray_lightning.by_workers(3, Path(sys.argv[1]) / "run", kills)
for name, weights in right.items():
    # rounding is amplified by Adam; with other batches they are 0.17 apart
    assert (run["weights"][name] - weights).abs().max() < 2e-3, name
assert run["kills"] == 2
# the first kill may come before Ray has looked for the report; the second does not
assert ray_lightning.lost(run["began"]) <= 1 and run["began"][-2:] == [2, 2]
"""


def test_searches_of_a_learner_and_of_tune(tmp_path: Path) -> None:
    rows = ran("tune-on-a-budget", tmp_path, SEARCHES)["rows"]
    assert list(rows) == ["your search", "ASHA of Ray Tune", "each to the end"]
    for row in rows.values():
        assert row["kept_steps"] in (5, 15, 45, 135, 405)
        assert row["begun"] <= 6 and row["trained_s"] <= row["held_s"]
    assert rows["your search"]["begun"] == 6


def test_batches_of_a_learner_and_of_serve(tmp_path: Path) -> None:
    rows = ran("dynamic-batching", tmp_path, BATCHES)["rows"]
    assert list(rows) == ["your batch", "@serve.batch"]
    for row in rows.values():
        # both models are asked for, and one fits
        assert row["loads"] >= 1 and row["batch"] >= 1


def test_a_batch_that_fails_is_told(tmp_path: Path) -> None:
    message = ran("dynamic-batching", tmp_path, FAILING_BATCH, RAISES)
    assert "no batch today" in message


def test_a_search_that_fails_leaves_room_for_the_next(tmp_path: Path) -> None:
    messages = ran("tune-on-a-budget", tmp_path, FAILING_SEARCH, WAITS)
    assert messages == ["Your search begins nothing while nothing runs."] * 2


@pytest.mark.parametrize(
    ("lab", "begin"),
    [
        ("tune-on-a-budget", "import torch\nfrom ray import tune"),
        ("dynamic-batching", "import torch\nfrom ray import serve"),
    ],
)
def test_a_passage_runs_as_it_stands(lab: str, begin: str) -> None:
    run(PASSAGE, lab, begin)


def test_the_passage_on_lightning_runs_as_it_stands() -> None:
    run(LIGHTNING)


def test_killed_workers_come_to_the_weights_of_one_process(tmp_path: Path) -> None:
    run(WORKERS, str(tmp_path))


def run(cell: str, *arguments: str) -> None:
    """Run Python where the benchmarks are."""
    ended = subprocess.run(
        [sys.executable, "-c", cell, *arguments],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
