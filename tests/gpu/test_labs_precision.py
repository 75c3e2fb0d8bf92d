"""What the labs on precision say of a real GPU, looked at there.

pytest -m gpu -s tests/gpu/test_labs_precision.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from warpbook_labs.device.gpu import find_gpu
from warpbook_labs.loader import CATALOGUE, load
from warpbook_labs.tracing import trace_submission
from warpbook_monitors.trace.chrome import read_chrome_trace
from warpbook_monitors.trace.report import report

pytestmark = pytest.mark.gpu

PRECISION = CATALOGUE / "precision"
#: gradients of filters, at shapes of the lab on convolutions: what one setting takes on
#: shapes that change and on one that does not, and whether its bits repeat. PyTorch
#: keeps what it found for a shape, tuned or not, so each setting has its own process.
CONVOLUTIONS = """
import json, sys, time, torch
from given import gradient

torch.manual_seed(0)
cudnn = torch.backends.cudnn
cudnn.benchmark, cudnn.deterministic = sys.argv[1] == "tuned", sys.argv[1] == "same"
filters = torch.randn(128, 128, 3, 3, device="cuda") / 64


def images(height, width):
    return torch.randn(32, 128, height, width, device="cuda")


def taken_ms(shapes):
    batches = [images(*shape) for shape in shapes]
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    for each in batches:
        gradient(each, filters)
    torch.cuda.synchronize()
    return (time.perf_counter() - began_s) * 1e3 / len(batches)


# what loads libraries comes before
taken_ms([(24, 24)])
changing = taken_ms([(32 + at, 60 - at) for at in range(24)])
taken_ms([(56, 56)])
fixed = taken_ms([(56, 56)] * 100)
x = images(56, 56)
first = gradient(x, filters)
repeats = all(torch.equal(first, gradient(x, filters)) for _ in range(30))
print(json.dumps([changing, fixed, repeats]))
"""


def tensor_core_share(source: str, tmp_path: Path) -> float:
    loaded = load(PRECISION / "mixed_precision")
    text = (loaded.folder / source).read_text(encoding="utf-8")
    trace = tmp_path / f"{source}.trace.json.gz"
    trace_submission(find_gpu(), loaded, text, trace, tmp_path / f"{source}.jsonl.gz")
    found = report(*read_chrome_trace(str(trace)))
    for each in found.kernels[:6]:
        print(f"| {source} | {each.name[:90]} | {each.calls} |")
    share = found.metrics.tensor_core_share
    assert share is not None
    return share


def test_autocast_brings_products_to_the_tensor_cores_and_float32_does_not(
    tmp_path: Path,
) -> None:
    half = tensor_core_share("reference.py", tmp_path)
    single = tensor_core_share("baseline.py", tmp_path)
    print(f"\n| time on tensor cores | {half:.1%} | in float32 | {single:.1%} |")
    assert half > 0.2
    assert single < 0.05


def of_convolutions(setting: str) -> tuple[float, float, bool]:
    """Give ms of a changing shape, of a fixed one, and whether bits repeat."""
    told = subprocess.run(
        [sys.executable, "-c", CONVOLUTIONS, setting],
        cwd=PRECISION / "convolution_settings",
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    changing, fixed, repeats = json.loads(told.stdout)
    return changing, fixed, repeats


def test_benchmark_costs_where_shapes_change_and_deterministic_repeats() -> None:
    found = {each: of_convolutions(each) for each in ("plain", "tuned", "same")}
    print("\n| cuDNN's setting | ms, shapes change | one shape | same bits 30 times |")
    print("|---|---|---|---|")
    for name, (changing, fixed, repeats) in found.items():
        print(f"| {name} | {changing:.3f} | {fixed:.3f} | {repeats} |")
    assert found["same"][2]
    # the lab's model says more than a hundred times; that it costs at all is the point
    assert found["tuned"][0] > 2 * found["plain"][0]
    # once tuned it is not slower
    assert found["tuned"][1] < 1.1 * found["plain"][1]
