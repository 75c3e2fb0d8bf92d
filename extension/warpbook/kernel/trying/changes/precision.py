"""Changes of the arithmetic: TF32, and bf16 by autocast."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar

import torch

from warpbook.kernel.trying.changes.change import Applied, TriedCell, on_gpu_only

#: Ampere, the first with TF32 and bf16
_LEAST_CAPABILITY = (8, 0)


class Tf32:
    """Products of floats on the tensor cores, which round their operands to TF32."""

    name: ClassVar[str] = "tf32"
    advice: ClassVar[str] = (
        "Write torch.set_float32_matmul_precision('high') and "
        "torch.backends.cudnn.allow_tf32 = True."
    )
    warm_ups: ClassVar[int] = 2

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        missing = on_gpu_only(cell)
        if missing is not None:
            return missing
        if torch.float32 not in cell.facts.product_dtypes("cuda"):
            return "the cell multiplies no float32 matrices on a GPU."
        if torch.cuda.get_device_capability() < _LEAST_CAPABILITY:
            return "this GPU has no TF32."
        if torch.get_float32_matmul_precision() != "highest":
            if torch.backends.cudnn.allow_tf32:
                return "TF32 is on already."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Turn it on; the settings are part of what is put back after each run."""
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        yield Applied(cell.run)


class Bf16:
    """Products in bfloat16, by autocast around the body."""

    name: ClassVar[str] = "bf16"
    advice: ClassVar[str] = (
        "Put the forward pass into: with torch.autocast(DEVICE, torch.bfloat16)."
    )
    warm_ups: ClassVar[int] = 2

    def why_not(self, cell: TriedCell) -> str | None:
        """Say why it does not fit this cell."""
        device = cell.facts.device
        if cell.facts.has_autocast:
            return "the cell uses autocast itself."
        if torch.float32 not in cell.facts.product_dtypes(device):
            return "the cell multiplies no float32 matrices."
        if device == "cuda":
            if torch.cuda.get_device_capability() < _LEAST_CAPABILITY:
                return "this GPU has no bf16."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Put it around the body."""
        device = cell.facts.device
        # the cache holds weights as they were before an optimizer's step
        has_cache = not cell.facts.optimizers

        def run() -> object:
            with torch.autocast(device, torch.bfloat16, cache_enabled=has_cache):
                return cell.run()

        yield Applied(run)
