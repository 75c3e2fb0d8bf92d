# triton.autotune with two shapes of a tile, and a grid of two sides that asks for them.
# launch: matmul[(ceil_div(m, M), ceil_div(n, N))](a, b, c, m, n, k)
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"M": 32, "N": 64, "DEPTH": 32}, num_warps=4, num_stages=2),
        triton.Config({"M": 64, "N": 16, "DEPTH": 64}, num_warps=2, num_stages=3),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    columns = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for begin in tl.range(0, k, DEPTH):
        d = begin + tl.arange(0, DEPTH)
        left = tl.load(a + rows * k + d[None, :], (rows < m) & (d[None, :] < k), 0.0)
        right = tl.load(
            b + d[:, None] * n + columns, (d[:, None] < k) & (columns < n), 0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows * n + columns, total, mask=(rows < m) & (columns < n))
