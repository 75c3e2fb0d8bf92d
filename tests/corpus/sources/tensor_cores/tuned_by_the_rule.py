# The rule computes the number of tiles, and the tile's sides are defaults of the kernel.
# launch: matmul[ceil_div(m, 64) * ceil_div(n, 64)](a, b, c, m, n, k, ACROSS=ceil_div(n, 64))
import triton
import triton.language as tl

SIDE = tl.constexpr(64)
DEPTH = tl.constexpr(32)


@triton.jit
def load(of, rows, columns, height, width):
    inside = (rows[:, None] < height) & (columns[None, :] < width)
    return tl.load(of + rows[:, None] * width + columns[None, :], mask=inside, other=0)


@triton.jit
def matmul(a, b, c, m, n, k, ACROSS: tl.constexpr):
    rows = tl.program_id(0) // ACROSS * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(0) % ACROSS * SIDE + tl.arange(0, SIDE)
    total = tl.zeros([SIDE, SIDE], dtype=tl.float32)
    begin = 0
    while begin < k:
        depth = begin + tl.arange(0, DEPTH)
        total = tl.dot(load(a, rows, depth, m, k), load(b, depth, columns, k, n), total)
        begin += DEPTH
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)
