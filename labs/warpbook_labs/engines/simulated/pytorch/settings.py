"""PyTorch's settings for all work that comes: a case begins with the usual ones."""

from __future__ import annotations

import torch

_SEED = 67280421310721


def begin() -> None:
    """Put back what an earlier case may have set."""
    cudnn = torch.backends.cudnn
    cudnn.enabled, cudnn.benchmark, cudnn.deterministic = True, False, False
    torch.backends.fp32_precision = cudnn.fp32_precision = "none"
    # of its own besides what follows: a getter fails where the two differ
    cudnn.allow_tf32 = True
    cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "tf32"
    torch.set_float32_matmul_precision("highest")
    torch._C._set_deterministic_algorithms(False, warn_only=False)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.clear_autocast_cache()
    torch.default_generator.manual_seed(_SEED)
