# Rows and columns beyond the end wrap round, so that only the depth has a mask.
# launch: matmul[(ceil_div(m, 32), ceil_div(n, 32))](a, b, c, m, n, k, SIDE=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    depth = tl.arange(0, DEPTH)
    left_at = a + (rows % m)[:, None] * k + depth[None, :]
    right_at = b + depth[:, None] * n + (columns % n)[None, :]
    total = tl.zeros((SIDE, SIDE), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, DEPTH)):
        rest = k - step * DEPTH
        left = tl.load(left_at, mask=depth[None, :] < rest, other=0.0)
        right = tl.load(right_at, mask=depth[:, None] < rest, other=0.0)
        total += tl.dot(left, right)
        left_at += DEPTH
        right_at += DEPTH * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)
