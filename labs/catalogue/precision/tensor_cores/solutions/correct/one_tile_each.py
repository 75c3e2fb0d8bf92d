# launch: matmul[(ceil_div(n, 32), ceil_div(m, 32))](a, b, c, m, n, k, TILE=32, K=64)
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
        total = tl.dot(left, right, total)
    tl.store(c + rows * n + columns, total, (rows < m) & (columns < n))
