"""The live verdict on a real GPU: it names each kind of work within a second.

`pytest -m gpu -s tests/gpu/test_live_verdict.py` prints the table that is kept in
docs/evidence/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.used_gpu import used_uuid
from tests.monitors.verdicts.labelled_phases import KINDS, named_ratio, told_kinds
from warpbook_monitors.recordings.recording import read_recording

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]


def test_each_kind_of_work_is_named_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl.gz"
    recorder = [sys.executable, str(ROOT / "tools" / "record_workloads.py"), str(path)]
    subprocess.run(recorder, env=os.environ, check=True, timeout=300)
    counts = told_kinds(read_recording(path), f"gpu:{used_uuid()}")
    print("\n| phase | told from 1 s on | readings |\n| --- | --- | --- |")
    for label, kinds in counts.items():
        words = ", ".join(f"{kind} {n}" for kind, n in kinds.most_common())
        print(f"| {label} | {words} | {kinds.total()} |")
    assert set(counts) >= set(KINDS) - {"all-reduce"}
    assert named_ratio(counts) >= 0.9, counts
