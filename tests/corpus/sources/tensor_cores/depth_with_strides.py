# The depth of a tile is every so-manieth number of k, so that no loop has a last part of its own.
# launch: matmul[(ceil_div(n, 32), ceil_div(m, 64))](a, b, c, m, n, k, M=64, N=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, DEPTH: tl.constexpr):
    down, across = tl.swizzle2d(
        tl.program_id(1), tl.program_id(0), tl.num_programs(1), tl.num_programs(0), 2
    )
    rows = down * M + tl.arange(0, M)[:, None]
    columns = across * N + tl.arange(0, N)[None, :]
    steps = tl.cdiv(k, DEPTH)
    total = tl.zeros((M, N), tl.float32)
    for step in range(steps):
        d = step + steps * tl.arange(0, DEPTH)
        left = tl.load(a + rows * k + d[None, :], (rows < m) & (d[None, :] < k), 0.0)
        right = tl.load(
            b + d[:, None] * n + columns, (d[:, None] < k) & (columns < n), 0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows * n + columns, total, mask=(rows < m) & (columns < n))
