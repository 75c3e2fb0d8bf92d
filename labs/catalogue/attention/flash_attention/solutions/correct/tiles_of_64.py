# launch: attend[ceil_div(n, 64), heads](q, k, v, out, n, num_stages=2)
import triton
import triton.language as tl

M = tl.constexpr(64)
N = tl.constexpr(32)
D = tl.constexpr(64)


@triton.jit
def attend(q, k, v, out, n):
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    places = head + rows[:, None] * D + d[None, :]
    left = tl.load(q + places, mask=rows[:, None] < n, other=0.0)
    peak = tl.full((M,), float("-inf"), tl.float32)
    mass = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for begin in range(0, tl.minimum((tl.program_id(0) + 1) * M, n), N):
        keys = begin + tl.arange(0, N)
        across = k + head + keys[None, :] * D + d[:, None]
        scores = tl.dot(left, tl.load(across, keys[None, :] < n, other=0.0)) / 8
        scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
        higher = tl.maximum(peak, tl.max(scores, axis=1))
        fade = tl.exp(peak - higher)
        weights = tl.exp(scores - higher[:, None])
        mass = mass * fade + tl.sum(weights, axis=1)
        down = v + head + keys[:, None] * D + d[None, :]
        right = tl.load(down, keys[:, None] < n, other=0.0)
        total = tl.dot(weights.to(tl.float16), right, total * fade[:, None])
        peak = higher
    tl.store(out + places, total / mass[:, None], mask=rows[:, None] < n)
