# tl.dot of three sides: two parts of the depth are a batch, whose products are summed.
# launch: matmul[(ceil_div(n, 32), ceil_div(m, 32))](a, b, c, m, n, k, SIDE=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((2, SIDE, SIDE), tl.float32)
    for begin in range(0, k, 2 * DEPTH):
        d = begin + tl.arange(0, 2)[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
        left = tl.load(
            a + rows[None, :, None] * k + d[:, None, :],
            mask=(rows[None, :, None] < m) & (d[:, None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + d[:, :, None] * n + columns[None, None, :],
            mask=(d[:, :, None] < k) & (columns[None, None, :] < n),
            other=0.0,
        )
        total = tl.dot(left, right, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(
        c + rows[:, None] * n + columns[None, :], tl.sum(total, axis=0), mask=inside
    )
