# Three programs stride over all tiles.
# launch: matmul[3](a, b, c, m, n, k, SIDE=32, DEPTH=64, num_stages=2)
import triton
import triton.language as tl


@triton.jit
def tile(a, b, c, m, n, k, top, first, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows, columns = top + tl.arange(0, SIDE), first + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for begin in range(0, k, DEPTH):
        d = begin + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None] * k + d[None, :],
            mask=(rows[:, None] < m) & (d[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + d[:, None] * n + columns[None, :],
            mask=(d[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total += tl.dot(left, right, out_dtype=tl.float32)
    tl.store(
        c + rows[:, None] * n + columns[None, :],
        total,
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    down = tl.cdiv(m, SIDE)
    for number in range(tl.program_id(0), down * tl.cdiv(n, SIDE), tl.num_programs(0)):
        tile(a, b, c, m, n, k, number % down * SIDE, number // down * SIDE, SIDE, DEPTH)
