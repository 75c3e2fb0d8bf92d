# What k has beyond whole parts comes first, so that the loop's parts have no mask along k.
# launch: matmul[ceil_div(m, 32) * ceil_div(n, 32)](a, b, c, m, n, k, SIDE=32, DEPTH=64, num_stages=1)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    across = (n + SIDE - 1) // SIDE
    rows = tl.program_id(0) // across * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(0) % across * SIDE + tl.arange(0, SIDE)
    d = tl.arange(0, DEPTH)
    left_at = a + tl.expand_dims(rows, 1) * k + tl.expand_dims(d, 0)
    right_at = b + tl.expand_dims(d, 1) * n + tl.expand_dims(columns, 0)
    has_row = tl.broadcast_to(tl.expand_dims(rows < m, 1), (SIDE, DEPTH))
    has_column = tl.broadcast_to(tl.expand_dims(columns < n, 0), (DEPTH, SIDE))
    first = k % DEPTH
    total = tl.zeros((SIDE, SIDE), tl.float32)
    if first > 0:
        left = tl.load(left_at, mask=has_row & (d < first)[None, :], other=0.0)
        right = tl.load(right_at, mask=has_column & (d < first)[:, None], other=0.0)
        total = tl.dot(left, right, total)
    left_at += first
    right_at += first * n
    for _ in range(k // DEPTH):
        left = tl.load(left_at, mask=has_row, other=0.0)
        right = tl.load(right_at, mask=has_column, other=0.0)
        total = tl.dot(left, right, total)
        left_at += DEPTH
        right_at += DEPTH * n
    to = c + rows[:, None] * n + columns[None, :]
    tl.store(to, total, mask=(rows < m)[:, None] & (columns < n)[None, :])
