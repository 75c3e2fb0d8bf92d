# launch: matmul[ceil_div(m, 128) * ceil_div(n, 64)](a, b, c, m, n, k, num_stages=2)
import triton
import triton.language as tl

# the tile that a program makes, and how much of k it takes at a time
M = tl.constexpr(128)
N = tl.constexpr(64)
K = tl.constexpr(64)
# programs that run at the same time share rows of a and columns of b in the L2 cache
GROUP = tl.constexpr(8)


@triton.jit
def matmul(a, b, c, m, n, k):
    down, across = tl.cdiv(m, M), tl.cdiv(n, N)
    group = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - group * GROUP, GROUP)
    within = tl.program_id(0) % (GROUP * across)
    rows = (group * GROUP + within % height) * M + tl.arange(0, M)
    columns = within // height * N + tl.arange(0, N)
    has_row, has_column = rows[:, None] < m, columns[None, :] < n
    total = tl.zeros((M, N), tl.float32)
    for begin in range(0, k, K):
        depth = begin + tl.arange(0, K)
        left = tl.load(
            a + rows[:, None] * k + depth[None, :],
            mask=has_row & (depth[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + depth[:, None] * n + columns[None, :],
            mask=(depth[:, None] < k) & has_column,
            other=0.0,
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=has_row & has_column)
