"""Sampling after a grading: what it tells, and that it changes nothing that is graded.

pytest -m gpu -s tests/gpu/test_labs_stalls.py
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import pytest

from tests.cubins import code_of
from warpbook_labs.cases.sampling import public_cases
from warpbook_labs.compiler.programs import image_of, job_of
from warpbook_labs.engines.kernels import lane
from warpbook_labs.engines.kernels.lane import KernelRequest, run_on_gpu
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load_all
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.sandbox import warm

pytestmark = pytest.mark.gpu

LABS = load_all()
GRADINGS = 20
#: what both medians may differ by
APART = 0.005


def graded(
    patch: pytest.MonkeyPatch, lab: str, source: str, *, is_sampled: bool
) -> DeviceResult:
    request = partial(KernelRequest, is_sampled=is_sampled)
    patch.setattr(lane, "KernelRequest", request)
    loaded = LABS[lab]
    cases = public_cases(loaded.lab)[:1]
    return run_on_gpu(find_gpu(), Submission(loaded, source), cases, True)


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("lab", "file", "text"),
    [
        ("tiled-transpose", "writes_down_columns.cu", "out["),
        ("fused-norm", "reference", "tl.sum"),
    ],
)
def test_the_lines_are_the_learners_own(
    lab: str, file: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = LABS[lab]
    source = loaded.reference if file == "reference" else loaded.wrong[file]
    result = graded(monkeypatch, lab, source, is_sampled=True)
    stalls = result.stalls
    assert stalls is not None, result
    print(f"\n{lab} {file}: {stalls.state} {stalls.note} {stalls.seconds:.2f} s")
    for kernel in stalls.kernels:
        print(
            f"  {kernel.name} {kernel.samples} samples, {kernel.unattributed} of none"
        )
        for line in kernel.lines[:4]:
            quoted = source.splitlines()[line.line - 1].strip()
            print(f"    {line.line} {line.samples} {line.reasons} {quoted}")
    assert stalls.state == "sampled"
    assert stalls.kernels[0].unattributed < 0.05 * stalls.kernels[0].samples
    top = {line.line for line in stalls.kernels[0].lines[:3]}
    wanted = {n for n, line in enumerate(source.splitlines(), 1) if text in line}
    assert top & wanted


def test_20_gradings_give_the_same_ratio_with_and_without_sampling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = LABS["tiled-transpose"].correct["padded.cu"]
    ratios: dict[bool, list[float]] = {True: [], False: []}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(GRADINGS):
        for is_sampled in (True, False):
            began_s = time.monotonic()
            result = graded(
                monkeypatch, "tiled-transpose", source, is_sampled=is_sampled
            )
            seconds[is_sampled].append(time.monotonic() - began_s)
            assert (result.stalls is not None) == is_sampled
            assert result.speed is not None and result.speed.of_baseline is not None
            ratios[is_sampled].append(result.speed.of_baseline.median)
    print(
        "\n| sampled | gradings | median ratio | least | most | s |"
        "\n|---|---|---|---|---|---|"
    )
    for is_sampled, of in ratios.items():
        print(
            f"| {is_sampled} | {len(of)} | {statistics.median(of):.4f} | {min(of):.4f} "
            f"| {max(of):.4f} | {statistics.median(seconds[is_sampled]):.2f} |"
        )
    with_it, without = (statistics.median(ratios[of]) for of in (True, False))
    assert abs(with_it / without - 1) < APART


def test_lines_change_no_instruction_that_the_driver_assembles() -> None:
    """Of Triton the driver makes machine code; of CUDA C++ NVRTC does, anywhere."""
    loaded, device = LABS["fused-norm"], Device()
    job = job_of(
        Submission(loaded, loaded.reference),
        device.architecture,
        [case.sizes for case in public_cases(loaded.lab)],
    )
    built = warm.run(job).result
    image = image_of(built)
    lines = image.decode().splitlines(keepends=True)
    bare = "".join(
        line for line in lines if not line.strip().startswith((".loc", ".file"))
    )
    assert code_of(device.assembled(image)) == code_of(device.assembled(bare.encode()))
