# The transpose is computed, of turned tiles, and turned before it is stored.
# launch: matmul[ceil_div(m, 32) * ceil_div(n, 64)](a, b, c, m, n, k, num_warps=4)
import triton
import triton.language as tl

ROWS = tl.constexpr(32)
COLUMNS = tl.constexpr(64)
DEPTH = tl.constexpr(32)


@triton.jit
def matmul(a, b, c, m, n, k):
    across = tl.cdiv(n, COLUMNS)
    rows = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS, ROWS), tl.float32)
    for begin in range(0, k, DEPTH):
        d = begin + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[None, :] * k + d[:, None],
            mask=(rows[None, :] < m) & (d[:, None] < k),
            other=0.0,
        )
        right = tl.load(
            b + d[None, :] * n + columns[:, None],
            mask=(columns[:, None] < n) & (d[None, :] < k),
            other=0.0,
        )
        total = tl.dot(right, left, acc=total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], tl.trans(total), mask=inside)
