"""What the labs on precision say of a real GPU, looked at there.

pytest -m gpu -s tests/gpu/test_labs_precision.py
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.engines.host.lane import run_on_gpu
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.grading.table import grader_of
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report

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
    grader_of(loaded.lab).record_trace(
        find_gpu(), Submission(loaded, text), trace, tmp_path / f"{source}.jsonl.gz"
    )
    trace_report = report(*read_chrome_trace(str(trace)))
    for kernel in trace_report.kernels[:6]:
        print(f"| {source} | {kernel.name[:90]} | {kernel.calls} |")
    share = trace_report.metrics.tensor_core_share
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
    completed = subprocess.run(
        [sys.executable, "-c", CONVOLUTIONS, setting],
        cwd=PRECISION / "convolution_settings",
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    changing, fixed, repeats = json.loads(completed.stdout)
    return changing, fixed, repeats


def test_benchmark_costs_where_shapes_change_and_deterministic_repeats() -> None:
    times = {
        setting: of_convolutions(setting) for setting in ("plain", "tuned", "same")
    }
    print("\n| cuDNN's setting | ms, shapes change | one shape | same bits 30 times |")
    print("|---|---|---|---|")
    for name, (changing, fixed, repeats) in times.items():
        print(f"| {name} | {changing:.3f} | {fixed:.3f} | {repeats} |")
    assert times["same"][2]
    # the lab's model says more than a hundred times; that it costs at all is the point
    assert times["tuned"][0] > 2 * times["plain"][0]
    # once tuned it is not slower
    assert times["tuned"][1] < 1.1 * times["plain"][1]


FP8 = load(PRECISION / "fp8_linear")
POSITIVE, SURPRISE = "sums of 2,048 positive products", "larger than any in earlier"


def without(text: str, *changes: tuple[str, str]) -> str:
    """Change the reference of the lab on FP8."""
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def in_fp8(source: str) -> dict[str, str]:
    """Give what is wrong in each public case, in words; "" is right."""
    cases = public_cases(FP8.lab)
    result = run_on_gpu(find_gpu(), Submission(FP8, source), cases, False)
    assert result.of == len(cases)
    for case in result.cases:
        print(f"| {case.about} | {case.message or 'right'} |")
    return {case.about: case.message for case in result.cases}


def test_fast_sums_in_fp8_are_told_by_many_positive_products() -> None:
    print("\n| case, with fast sums | on this GPU |\n|---|---|")
    fast = without(FP8.reference, ("out=None if", "fast_sums=True, out=None if"))
    words_by_case = in_fp8(fast)
    assert [about for about, words in words_by_case.items() if words] == [POSITIVE]
    assert words_by_case[POSITIVE].startswith("In call 1 of 3: out[")


def test_what_does_not_saturate_is_wrong_where_the_cast_makes_nan() -> None:
    torch = pytest.importorskip("torch")
    cast = torch.tensor(1e4, device="cuda").to(torch.float8_e4m3fn).float().item()
    print(f"\nPyTorch {torch.__version__} makes {cast} of 10,000")
    print("| case, without a clamp | on this GPU |\n|---|---|")
    words_by_case = in_fp8(without(FP8.reference, (".clamp_(-448, 448)", "")))
    wrong = [about for about, words in words_by_case.items() if words]
    assert bool(wrong) == (cast != cast)
    assert all(SURPRISE in about for about in wrong)


def test_the_product_of_the_lab_on_fp8_is_one_in_8_bits(tmp_path: Path) -> None:
    trace, log = tmp_path / "t.trace.json.gz", tmp_path / "t.jsonl.gz"
    grader_of(FP8.lab).record_trace(
        find_gpu(), Submission(FP8, FP8.reference), trace, log
    )
    trace_report = report(*read_chrome_trace(str(trace)))
    by_unit = {work.bound: work.time_ns for work in trace_report.metrics.kernel_work}
    print(f"\n| {' | '.join(f'{unit}: {ns:,} ns' for unit, ns in by_unit.items())} |")
    assert by_unit["tensor cores in 8 bits"] > 0
    assert "tensor cores" not in by_unit
