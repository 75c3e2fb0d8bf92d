"""Speed on a real GPU: the same again and again, and beside the work of others.

pytest -m gpu -s tests/gpu/test_labs_speed.py
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache

import pytest

from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.kernels.lane import run_on_gpu
from warpbook_labs.gpu.gpu import Gpu, find_gpu
from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.device import DeviceResult, SpeedResult

pytestmark = pytest.mark.gpu

#: host code has a lane of its own: test_labs_host_speed.py
TIMED = [
    name
    for name, loaded in load_all().items()
    if loaded.lab.speed is not None and loaded.lab.language != "host"
]
#: their references must reach this share of what the GPU was measured to reach
OF_BANDWIDTH = {
    "vector-add": 0.85,
    "thread-and-block": 0.85,
    "tiled-transpose": 0.85,
    "fused-norm": 0.85,
}
OF_CUBLAS = 0.5
GRADINGS = 20
#: which submission is graded beside a load
BESIDE = ("tiled-transpose", "padded.cu")
#: which are graded again and again, and how far apart ratios may be
AGAIN = {
    BESIDE: 0.01,
    ("fused-norm", "reference"): 0.01,
    ("matmul", "reference"): 0.01,
    ("flash-attention", "reference"): 0.02,
    ("groupby-join", "reference"): 0.02,
}
#: a process that multiplies matrices without a pause
LOAD = """
import sys, torch
a = torch.randn(4096, 4096, device="cuda")
torch.mm(a, a); torch.cuda.synchronize()
sys.stdout.write("ready\\n"); sys.stdout.flush()
while True:
    for _ in range(20):
        torch.mm(a, a)
    torch.cuda.synchronize()
"""


@cache
def gpu() -> Gpu:
    return find_gpu()


@cache
def labs() -> dict[str, LoadedLab]:
    return load_all()


def graded(lab: str, text: str) -> DeviceResult:
    loaded = labs()[lab]
    cases = public_cases(loaded.lab)[:1]
    return run_on_gpu(gpu(), Submission(loaded, text), cases, True)


def timed(result: DeviceResult) -> SpeedResult:
    assert result.right == result.of, [case for case in result.cases if not case.passed]
    assert result.flags == ()
    assert result.speed is not None and result.speed.of_baseline is not None, result
    return result.speed


def test_references_reach_what_the_gpu_can() -> None:
    print("\n| lab | status | us | of the limit | of the baseline | pairs | again |")
    print("|---|---|---|---|---|---|---|")
    short, card = [], None
    for name in TIMED:
        result = graded(name, labs()[name].reference)
        speed, card = timed(result), result.limit_card
        assert speed.learner_ns is not None and speed.of_baseline is not None
        of_limit = speed.of_limit.median if speed.of_limit else None
        limit = "unknown" if of_limit is None else f"{of_limit:.3f}"
        print(
            f"| {name} | {speed.status} | {speed.learner_ns / 1e3:,.1f} | {limit} | "
            f"{speed.of_baseline.median:.3f} | {speed.calls} | {speed.discarded} |"
        )
        if (of_limit or 0) < OF_BANDWIDTH.get(name, 0):
            short.append(f"{name} reaches {limit}")
        if result.flags:
            short.append(f"{name} is faster than the limit: {result.flags}")
        if speed.status != "fast enough":
            short.append(f"{name}: {speed.message}")
        peak = card.flops_per_s.get("float32") if card else None
        if name == "matmul" and peak:
            flops = value(labs()[name].lab.work.flops, speed.sizes)
            reached = flops / speed.learner_ns * 1e9 / peak
            print(f"| matmul beside cuBLAS | | | {reached:.3f} | | | |")
            if reached < OF_CUBLAS:
                short.append(f"matmul reaches {reached:.3f} of cuBLAS")
    print(f"\n{card}")
    assert short == []


def source_of(lab: str, file: str) -> str:
    loaded = labs()[lab]
    return loaded.reference if file == "reference" else loaded.correct[file]


@pytest.mark.parametrize(("lab", "file"), AGAIN)
def test_the_same_submission_gets_the_same_ratio_20_times(lab: str, file: str) -> None:
    gradings = [timed(graded(lab, source_of(lab, file))) for _ in range(GRADINGS)]
    ratios = [grading.of_baseline.median for grading in gradings if grading.of_baseline]
    middle = statistics.median(ratios)
    apart = max(abs(ratio / middle - 1) for ratio in ratios)
    print(
        "\n| lab | gradings | median ratio | least | most | furthest from the median |"
    )
    print("|---|---|---|---|---|---|")
    print(
        f"| {lab} | {len(ratios)} | {middle:.4f} | {min(ratios):.4f} | "
        f"{max(ratios):.4f} | {apart:.2%} |"
    )
    assert len(ratios) == GRADINGS
    assert apart < AGAIN[lab, file]
    assert len({grading.status for grading in gradings}) == 1


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Have another process use the GPU meanwhile."""
    other = subprocess.Popen(
        [sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        yield
    finally:
        other.kill()
        other.wait()
        if other.stdout is not None:
            other.stdout.close()


def test_beside_another_process_it_is_the_same_or_too_busy() -> None:
    lab, file = BESIDE
    text = source_of(lab, file)
    alone = timed(graded(lab, text)).of_baseline
    assert alone is not None
    with load():
        begun_s = time.monotonic()
        result = graded(lab, text)
        took_s = time.monotonic() - begun_s
    assert result.right == result.of and result.speed is not None
    speed = result.speed
    ratio = speed.of_baseline.median if speed.of_baseline else None
    print("\n| beside another process | status | ratio alone | ratio | s | in words |")
    print("|---|---|---|---|---|---|")
    print(
        f"| 4096 x 4096 products | {speed.status} | {alone.median:.3f} | "
        f"{ratio or '-'} | {took_s:.1f} | {speed.message.replace('|', '/')} |"
    )
    if speed.status != "too busy":
        assert ratio is not None and abs(ratio / alone.median - 1) < 0.02
