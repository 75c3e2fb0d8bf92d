# A whole file: configurations from a comprehension, what launches it, and a check of it.
# launch: added[(triton.cdiv(n, BLOCK),)](x, y, out, n=n)
from __future__ import annotations

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": size}, num_warps=warps)
    for size in (256, 1024)
    for warps in (2, 4)
]


@triton.jit
def _relu(v, dtype: tl.constexpr = tl.float32):
    return tl.where(v < 0, 0.0, v).to(dtype)


@triton.autotune(configs=CONFIGS, key=["n"], warmup=5)
@triton.jit
def added(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, FILL: tl.constexpr = 0.0):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = (pid >= 0) & (offsets < n)
    x = tl.load(x_ptr + offsets, mask=mask, other=FILL)
    y = tl.load(y_ptr + offsets, mask=mask, other=FILL)
    tl.store(out_ptr + offsets, _relu(x + y), mask=mask)


def solve(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int):
    def grid(meta):
        return (triton.cdiv(n, meta["BLOCK"]),)

    added[grid](x, y, out, n)


if __name__ == "__main__":
    assert torch.cuda.is_available()
