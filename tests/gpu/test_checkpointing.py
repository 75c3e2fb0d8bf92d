"""Memory and time of plans that recompute, beside what the lab's model says.

pytest -m gpu -s tests/gpu/test_checkpointing.py

The allocator's peak also has gradients and buffers of a few operations, so plans are
compared with the one that recomputes nothing.
"""

import runpy
from types import ModuleType
from typing import Any

import pytest
import torch

from warpbook_labs.course.session import find

pytestmark = pytest.mark.gpu

INNER = (2048, 8192, 4096, 16_384)
PLANS: tuple[list[list[int]], ...] = (
    [],
    [[1, 2]],
    [[0, 2], [2, 4]],
    [[0, 1], [1, 2], [2, 3], [3, 4]],
)


def milliseconds(step: Any) -> float:
    step()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(10):
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def test_a_plan_holds_less_and_recomputes_what_the_model_says() -> None:
    lab = find("checkpointing")
    given = runpy.run_path(str(lab.folder / "given.py"))
    written = ModuleType("answers")
    exec(lab.reference, written.__dict__)
    blocks, x = given["chain"](INNER, hidden=2048, tokens=8192, device="cuda")
    described = given["measure"](blocks, x)
    whole_mib = sum(block["saved_mib"] for block in described)
    output_mib = described[0]["input_mib"]
    expected = given["gradients"](blocks, x, [])
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("plan | model MiB | activations MiB | allocated MiB | GFLOP again | ms")
    for segments in PLANS:
        step = given["run"](blocks, x, segments)
        peak_mib = written.peak_mib(described, segments)
        took_ms = milliseconds(
            lambda segments=segments: given["gradients"](blocks, x, segments)
        )
        print(
            f"{segments} | {peak_mib:.0f} | {step['activations_mib']:.0f} | "
            f"{step['allocated_mib']:.0f} | {step['extra_gflop']:.0f} | {took_ms:.2f}"
        )
        assert step["activations_mib"] == pytest.approx(peak_mib + output_mib, rel=0.01)
        again_gflop = written.recomputed_gflop(described, segments)
        assert step["extra_gflop"] == pytest.approx(again_gflop)
        # what is saved at once is at least there, and a plan never needs more
        assert peak_mib <= step["allocated_mib"]
        if not segments:
            most_mib = step["allocated_mib"]
        assert step["allocated_mib"] <= most_mib
        for one, other in zip(
            expected, given["gradients"](blocks, x, segments), strict=True
        ):
            torch.testing.assert_close(one, other)
    assert written.peak_mib(described, PLANS[-1]) < whole_mib
