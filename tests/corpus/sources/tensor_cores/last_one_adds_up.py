# k is cut in two; whoever comes last to a tile, by an atomic counter, adds up both.
# scratch: part float32[2 * m * n]
# scratch: came int32[ceil_div(m, 32) * ceil_div(n, 32)]
# launch: clear[ceil_div(ceil_div(m, 32) * ceil_div(n, 32), 128)](came, ceil_div(m, 32) * ceil_div(n, 32))
# launch: split[(ceil_div(m, 32), ceil_div(n, 32), 2)](a, b, part, came, c, m, n, k)
import triton
import triton.language as tl


@triton.jit
def clear(came, count):
    i = tl.program_id(0) * 128 + tl.arange(0, 128)
    tl.store(came + i, 0, mask=i < count)


@triton.jit
def split(a, b, part, came, c, m, n, k):
    r = tl.program_id(0) * 32 + tl.arange(0, 32)
    q = tl.program_id(1) * 32 + tl.arange(0, 32)
    half = tl.cdiv(tl.cdiv(k, 2), 32) * 32
    lo = tl.program_id(2) * half
    hi = tl.minimum(lo + half, k)
    total = tl.zeros((32, 32), tl.float32)
    for d in range(lo, hi, 32):
        e = d + tl.arange(0, 32)
        x = tl.load(
            a + r[:, None] * k + e[None, :],
            mask=(r[:, None] < m) & (e[None, :] < hi),
            other=0.0,
        )
        y = tl.load(
            b + e[:, None] * n + q[None, :],
            mask=(e[:, None] < hi) & (q[None, :] < n),
            other=0.0,
        )
        total = tl.dot(x, y, total)
    at = r[:, None] * n + q[None, :]
    inside = (r[:, None] < m) & (q[None, :] < n)
    tl.store(part + tl.program_id(2) * m * n + at, total, mask=inside)
    tl.debug_barrier()
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    before = tl.atomic_add(came + tile, 1, sem="acq_rel")
    if before == 1:
        both = tl.load(part + at, mask=inside, other=0.0) + tl.load(
            part + m * n + at, mask=inside, other=0.0
        )
        tl.store(c + at, both, mask=inside)
