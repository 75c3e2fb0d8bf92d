"""Speed of host code on a real GPU: the same again and again.

pytest -m gpu -s tests/gpu/test_labs_host_speed.py
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.labs.referee.small_lab import RIGHT, write_lab
from warpbook_labs.device.gpu import find_gpu
from warpbook_labs.drawing import public_cases
from warpbook_labs.jail.limits import Limits
from warpbook_labs.loader import load_all
from warpbook_labs.referee.lane import run_on_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(580)]

GRADINGS = 20
#: of a unit, which then lasts 10 ms on an H200, so that the pipes add little
CALLS = 256
LABS = [
    name
    for name, loaded in load_all().items()
    if loaded.lab.language == "host" and loaded.lab.speed is not None
]
#: the same result by more work: a baseline to be faster than
MORE_WORK = RIGHT.replace(
    "    out.copy_", "    for _ in range(8):\n        x * factor\n    out.copy_"
)


def test_the_same_submission_gets_the_same_ratio_20_times(tmp_path: Path) -> None:
    loaded = write_lab(tmp_path, all_on_device=True, n=4 << 20, calls=CALLS)
    (loaded.folder / "reference.py").write_text(MORE_WORK, encoding="utf-8")
    cases = public_cases(loaded.lab)[:1]
    ratios, unit_ns, again = [], [], 0
    for _ in range(GRADINGS):
        result = run_on_gpu(find_gpu(), loaded, RIGHT, cases, True, Limits())
        speed = result.speed
        assert result.right == result.of, result.cases
        assert speed is not None and speed.of_baseline is not None, speed
        ratios.append(speed.of_baseline.median)
        unit_ns.append(CALLS * (speed.learner_ns or 0))
        again += speed.discarded
    middle = statistics.median(ratios)
    apart = max(abs(each / middle - 1) for each in ratios)
    print("\n| gradings | unit, ms | median ratio | least | most | furthest | again |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {len(ratios)} | {statistics.median(unit_ns) / 1e6:.1f} | {middle:.4f} | "
        f"{min(ratios):.4f} | {max(ratios):.4f} | {apart:.2%} | {again} |"
    )
    assert apart < 0.02


@pytest.mark.parametrize("lab", LABS)
def test_the_reference_of_a_host_lab_is_fast_enough(lab: str) -> None:
    loaded = load_all()[lab]
    cases = public_cases(loaded.lab)[:1]
    result = run_on_gpu(find_gpu(), loaded, loaded.reference, cases, True, Limits())
    speed = result.speed
    assert result.right == result.of, result.cases
    assert speed is not None and speed.of_baseline is not None, speed
    assert speed.learner_ns is not None and speed.baseline_ns is not None
    of_limit = f"{speed.of_limit.median:.3f}" if speed.of_limit else "unknown"
    print("\n| lab | status | ms a call | baseline | of the limit | faster | pairs |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {lab} | {speed.status} | {speed.learner_ns / 1e6:.3f} | "
        f"{speed.baseline_ns / 1e6:.3f} | {of_limit} | "
        f"{speed.of_baseline.median:.3f} | {speed.of_baseline.pairs} |"
    )
    assert speed.status in ("fast enough", "not graded"), speed.message
