# launch: attend[ceil_div(n, 64), heads](q, k, v, out, n, num_stages=2)
import triton
import triton.language as tl

M = tl.constexpr(64)
N = tl.constexpr(64)
D = tl.constexpr(64)

# Right as long as exp() is finite: what if a score is 100? Which tiles does no row see?


@triton.jit
def attend(q, k, v, out, n):
    head = tl.program_id(1) * n * D
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    places = head + rows[:, None] * D + d[None, :]
    left = tl.load(q + places, mask=rows[:, None] < n, other=0.0)
    mass = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    for begin in range(0, n, N):
        keys = begin + tl.arange(0, N)
        across = k + head + keys[None, :] * D + d[:, None]
        scores = tl.dot(left, tl.load(across, keys[None, :] < n, other=0.0)) / 8
        is_seen = keys[None, :] <= rows[:, None]
        weights = tl.where(is_seen, tl.exp(scores), 0.0)
        mass += tl.sum(weights, axis=1)
        down = v + head + keys[:, None] * D + d[None, :]
        right = tl.load(down, keys[:, None] < n, other=0.0)
        total = tl.dot(weights.to(tl.float16), right, total)
    tl.store(out + places, total / mass[:, None], mask=rows[:, None] < n)
