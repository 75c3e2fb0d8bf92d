# Two tiles of rows share each tile of keys, and a large negative number masks.
# launch: attend[ceil_div(n, 64), heads](q, k, v, out, n, num_stages=2)
import triton
import triton.language as tl

HALF = tl.constexpr(32)
N = tl.constexpr(32)
D = tl.constexpr(64)
# log2(e) / 8
SCALE = tl.constexpr(0.18033688011112042)


@triton.jit
def corrected(queries, across, values, keys, rows, peak, mass, total):
    scores = tl.dot(queries, across) * SCALE
    scores = tl.where(rows[:, None] >= keys[None, :], scores, -3.0e38)
    top = tl.maximum(peak, tl.max(scores, 1))
    weights = tl.math.exp2(scores - top[:, None])
    fade = tl.math.exp2(peak - top)
    total = tl.dot(weights.to(values.dtype), values, total * fade[:, None])
    return top, mass * fade + tl.sum(weights, 1), total


@triton.jit
def attend(q, k, v, out, n):
    base = tl.program_id(1).to(tl.int64) * n * D
    d = tl.arange(0, D)
    upper = tl.program_id(0) * 2 * HALF + tl.arange(0, HALF)
    lower = upper + HALF
    up = base + upper[:, None] * D + d[None, :]
    low = base + lower[:, None] * D + d[None, :]
    q_up = tl.load(q + up, mask=upper[:, None] < n, other=0.0)
    q_low = tl.load(q + low, mask=lower[:, None] < n, other=0.0)
    peak_up = tl.full([HALF], -3.0e38, tl.float32)
    peak_low = tl.full([HALF], -3.0e38, tl.float32)
    mass_up = tl.zeros([HALF], tl.float32)
    mass_low = tl.zeros([HALF], tl.float32)
    total_up = tl.zeros([HALF, D], tl.float32)
    total_low = tl.zeros([HALF, D], tl.float32)
    begin = 0
    while (begin < (tl.program_id(0) + 1) * 2 * HALF) & (begin < n):
        keys = begin + tl.arange(0, N)
        down = base + keys[:, None] * D + d[None, :]
        across = tl.trans(tl.load(k + down, mask=keys[:, None] < n, other=0.0))
        values = tl.load(v + down, mask=keys[:, None] < n, other=0.0)
        peak_up, mass_up, total_up = corrected(
            q_up, across, values, keys, upper, peak_up, mass_up, total_up
        )
        peak_low, mass_low, total_low = corrected(
            q_low, across, values, keys, lower, peak_low, mass_low, total_low
        )
        begin += N
    tl.store(out + up, total_up / mass_up[:, None], mask=upper[:, None] < n)
    tl.store(out + low, total_low / mass_low[:, None], mask=lower[:, None] < n)
