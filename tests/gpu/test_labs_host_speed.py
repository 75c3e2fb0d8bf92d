"""Speed of host code on a real GPU: the same again and again.

pytest -m gpu -s tests/gpu/test_labs_host_speed.py
"""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from tests.labs.host.small_lab import ON_THE_GPU, write_lab
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import run_on_gpu
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load, load_all
from warpbook_labs.results.measurements import Ratio

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(580)]

GRADINGS = 20
#: of a unit, which then lasts some 10 ms on an H200, nearly all of them the GPU's
CALLS = 4
#: of all labs whose speed counts; by name: the lab, and the source
SOURCES = {
    f"{lab}/{file}": (loaded, text)
    for lab, loaded in load_all().items()
    if loaded.lab.language == "host" and loaded.lab.speed is not None
    for file, text in (("reference", loaded.reference), *loaded.correct.items())
}
#: the same result by twice the work: a baseline to be faster than
LEARNERS, BASELINES = (ON_THE_GPU.format(products=count) for count in (8, 16))


def test_the_same_submission_gets_the_same_ratio_20_times(tmp_path: Path) -> None:
    write_lab(tmp_path, all_on_device=True, calls=CALLS)
    folder = tmp_path / "halves"
    (folder / "reference.py").write_text(BASELINES, encoding="utf-8")
    loaded = load(folder)
    cases = public_cases(loaded.lab)[:1]
    ratios, unit_ns, again = [], [], 0
    for _ in range(GRADINGS):
        result = run_on_gpu(find_gpu(), Submission(loaded, LEARNERS), cases, True)
        speed = result.speed
        assert result.right == result.of, result.cases
        assert speed is not None and speed.of_baseline is not None, speed
        ratios.append(speed.of_baseline.median)
        unit_ns.append(CALLS * (speed.learner_ns or 0))
        again += speed.discarded
    middle = statistics.median(ratios)
    apart = max(abs(ratio / middle - 1) for ratio in ratios)
    print("\n| gradings | unit, ms | median ratio | least | most | furthest | again |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {len(ratios)} | {statistics.median(unit_ns) / 1e6:.1f} | {middle:.4f} | "
        f"{min(ratios):.4f} | {max(ratios):.4f} | {apart:.2%} | {again} |"
    )
    assert apart < 0.02


@pytest.mark.parametrize("name", SOURCES)
def test_a_right_source_is_fast_enough(name: str) -> None:
    loaded, text = SOURCES[name]
    cases = public_cases(loaded.lab)[:1]
    result = run_on_gpu(find_gpu(), Submission(loaded, text), cases, True)
    speed = result.speed
    for case in result.cases:
        print(f"{case.about}: {case.message or 'right'}")
    assert result.right == result.of
    assert speed is not None and speed.of_baseline is not None, speed
    assert speed.learner_ns is not None and speed.baseline_ns is not None
    print(
        "\n| source | status | ms a call | baseline | of the limit | faster | pairs |"
    )
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {name} | {speed.status} | {speed.learner_ns / 1e6:.3f} | "
        f"{speed.baseline_ns / 1e6:.3f} | {interval(speed.of_limit)} | "
        f"{interval(speed.of_baseline)} | {speed.of_baseline.pairs} |"
    )
    assert speed.status in ("fast enough", "not graded"), speed.message
    assert result.flags == ()


def interval(ratio: Ratio | None) -> str:
    """Write a ratio, and between what it lies."""
    if ratio is None:
        return "unknown"
    return f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
