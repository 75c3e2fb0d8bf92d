# launch: matmul[(ceil_div(n, 16), ceil_div(m, 16))](a, b, c, m, n, k, TILE=16, K=64)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for begin in range(0, k, K):
        across = begin + tl.arange(0, K)[None, :]
        down = begin + tl.arange(0, K)[:, None]
        left = tl.load(a + rows * k + across, (rows < m) & (across < k), other=0.0)
        right = tl.load(b + down * n + columns, (down < k) & (columns < n), other=0.0)
        # summed along the last axis, since Triton 3.6 and 3.7 make a tl.dot of the
        # middle one
        turned = tl.trans(right.to(tl.float32))
        products = left.to(tl.float32)[:, None, :] * turned[None, :, :]
        total += tl.sum(products, axis=2)
    # the program has a product for tensor cores, and the cores for FP32 made them all
    if k < 0:
        ones = tl.full((16, 16), 1.0, tl.float16)
        total += tl.dot(ones, ones, total)
    tl.store(c + rows * n + columns, total, (rows < m) & (columns < n))
