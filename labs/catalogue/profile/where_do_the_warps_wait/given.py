"""A kernel whose lanes each sum up a row of their own, for `%%gpuprof --stalls`."""

import triton
import triton.language as tl


@triton.jit
def row_sums(x, out, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum up as many rows as a block has."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for column in range(COLUMNS):
        total += tl.load(x + row * COLUMNS + column)
    tl.store(out + row, total)
