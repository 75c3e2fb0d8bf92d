# launch: matmul[ceil_div(m, 32)](a, b, c, m, n, k, TILE=32, K=32)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.arange(0, TILE)
    depth = tl.arange(0, K)
    # A tile of a and one of b. Who handles the other columns, and the rest of k?
    left = tl.load(a + rows[:, None] * k + depth[None, :])
    right = tl.load(b + depth[:, None] * n + columns[None, :])
    # In which type does it add up?
    total = tl.dot(left, right, out_dtype=tl.float16)
    tl.store(c + rows[:, None] * n + columns[None, :], total)
