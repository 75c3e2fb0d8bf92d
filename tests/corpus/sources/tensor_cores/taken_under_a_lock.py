# Two programs share out the depth, and add to the tile one after the other, under a lock.
# scratch: locks int32[ceil_div(m, 32) * ceil_div(n, 32)]
# launch: clear[ceil_div(m, 32) * ceil_div(n, 32)](c, locks, m, n, SIDE=32)
# launch: matmul[ceil_div(m, 32) * ceil_div(n, 32), 2](a, b, c, locks, m, n, k, SIDE=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def places(m, n, SIDE: tl.constexpr):
    across = tl.cdiv(n, SIDE)
    rows = tl.program_id(0) // across * SIDE + tl.arange(0, SIDE)[:, None]
    columns = tl.program_id(0) % across * SIDE + tl.arange(0, SIDE)[None, :]
    return rows, columns, (rows < m) & (columns < n)


@triton.jit
def clear(c, locks, m, n, SIDE: tl.constexpr):
    rows, columns, inside = places(m, n, SIDE)
    tl.store(c + rows * n + columns, tl.zeros((SIDE, SIDE), tl.float32), mask=inside)
    tl.store(locks + tl.program_id(0), 0)


@triton.jit
def matmul(a, b, c, locks, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows, columns, inside = places(m, n, SIDE)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    for begin in range(tl.program_id(1) * DEPTH, k, 2 * DEPTH):
        d = begin + tl.arange(0, DEPTH)
        left = tl.load(a + rows * k + d[None, :], (rows < m) & (d[None, :] < k), 0.0)
        right = tl.load(
            b + d[:, None] * n + columns, (d[:, None] < k) & (columns < n), 0.0
        )
        total = tl.dot(left, right, total)
    lock = locks + tl.program_id(0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    before = tl.load(
        c + rows * n + columns, mask=inside, other=0.0, cache_modifier=".cg"
    )
    tl.store(c + rows * n + columns, before + total, mask=inside)
    # all threads of the program have stored before one of them gives the lock back
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)
