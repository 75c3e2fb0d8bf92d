# launch: matmul[(ceil_div(n, 64), ceil_div(m, 64))](a, b, c, m, n, k, TILE=64, K=32)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(1) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(0) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float64)
    for begin in range(0, k, K):
        across = begin + tl.arange(0, K)[None, :]
        down = begin + tl.arange(0, K)[:, None]
        left = tl.load(a + rows * k + across, (rows < m) & (across < k), other=0.0)
        right = tl.load(b + down * n + columns, (down < k) & (columns < n), other=0.0)
        # the same: the compiler sees that the product is added to what is there
        total += tl.dot(left, right)
    tl.store(c + rows * n + columns, total, (rows < m) & (columns < n))
