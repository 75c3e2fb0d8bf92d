# Two programs share out the depth and add by atomics to what another launch has cleared.
# launch: clear[ceil_div(m * n, 256)](c, m * n)
# launch: matmul[(ceil_div(m, 32), ceil_div(n, 32), 2)](a, b, c, m, n, k, SIDE=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def clear(c, count):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(c + i, 0.0, mask=i < count)


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for begin in range(tl.program_id(2) * DEPTH, k, 2 * DEPTH):
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
        total = tl.dot(left, right, total)
    tl.atomic_add(
        c + rows[:, None] * n + columns[None, :],
        total,
        mask=(rows[:, None] < m) & (columns[None, :] < n),
    )
