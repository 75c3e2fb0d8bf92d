"""`warpbook memory` against the peak that PyTorch's allocator counts on a real GPU.

pytest -m gpu -s tests/gpu/test_memory_of_models.py

Each case needs less than 40 GB. Two steps are run, and the second one is compared: the
optimizer's states are there by then, and the workspace of cuBLAS.
"""

import gc
from collections.abc import Iterator

import pytest
import torch

from tests.model_steps import CASES, made
from warpbook_monitors import units
from warpbook_monitors.model_memory.plan import check_plan
from warpbook_monitors.model_memory.stages import stage_memories

pytestmark = pytest.mark.gpu

#: how far the calculator may be from the measured peak
TOLERANCE = 0.10


@pytest.fixture(autouse=True)
def empty_gpu() -> Iterator[None]:
    """A case starts and ends with nothing of its own on the GPU."""
    gc.collect()
    torch.cuda.empty_cache()
    yield
    gc.collect()
    torch.cuda.empty_cache()


@pytest.mark.parametrize("name", CASES)
def test_the_peak_of_a_step_is_within_a_tenth(name: str) -> None:
    make, model, plan = CASES[name]
    check_plan(model, plan)
    [stage] = stage_memories(model, plan)
    before = torch.cuda.memory_allocated()
    stepping = made(make, model, plan, "cuda")
    counted = sum(weight.numel() for weight in stepping.module.parameters())
    assert counted == model.parameters == stage.parameters
    stepping.step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    stepping.step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    ratio = stage.peak_bytes / peak
    print(
        f"\n{name}: {units.size(peak)} measured, {units.size(stage.peak_bytes)} "
        f"computed ({units.share(ratio)}), {stage.peak_block or 'optimizer'}, "
        f"torch {torch.__version__}"
    )
    assert ratio == pytest.approx(1, abs=TOLERANCE)
