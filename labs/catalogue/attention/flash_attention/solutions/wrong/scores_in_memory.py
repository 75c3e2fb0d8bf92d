# scratch: scores float32[heads * n * n]
# scratch: mass float32[heads * n]
# launch: score[ceil_div(n, 64), ceil_div(n, 64), heads](q, k, scores, n, num_stages=2)
# launch: weigh[n, heads](scores, mass, n, BLOCK=next_power_of_2(n))
# launch: mix[ceil_div(n, 64), heads](scores, mass, v, out, n, num_stages=1)
import triton
import triton.language as tl

# three kernels, as in eager mode: right, and the matrix of scores is written and read
T = tl.constexpr(64)


@triton.jit
def score(q, k, scores, n):
    head = tl.program_id(2) * n
    rows = tl.program_id(0) * T + tl.arange(0, T)[:, None]
    keys = tl.program_id(1) * T + tl.arange(0, T)[None, :]
    d = tl.arange(0, T)
    if tl.program_id(1) <= tl.program_id(0):
        left = tl.load(q + (head + rows) * T + d[None, :], rows < n, other=0.0)
        across = tl.load(k + (head + keys) * T + d[:, None], keys < n, other=0.0)
        made = tl.where(keys <= rows, tl.dot(left, across) / 8, float("-inf"))
        tl.store(scores + (head + rows) * n + keys, made, (rows < n) & (keys < n))


@triton.jit
def weigh(scores, mass, n, BLOCK: tl.constexpr):
    row, keys = tl.program_id(0), tl.arange(0, BLOCK)
    place = (tl.program_id(1) * n + row) * n + keys
    line = tl.load(scores + place, keys <= row, other=float("-inf"))
    weights = tl.exp(line - tl.max(line))
    tl.store(scores + place, weights, keys <= row)
    tl.store(mass + tl.program_id(1) * n + row, tl.sum(weights))


@triton.jit
def mix(scores, mass, v, out, n):
    head = tl.program_id(1) * n
    rows = tl.program_id(0) * T + tl.arange(0, T)
    d = tl.arange(0, T)
    total = tl.zeros((T, T), tl.float32)
    for begin in range(0, tl.minimum((tl.program_id(0) + 1) * T, n), T):
        keys = begin + tl.arange(0, T)
        is_seen = (keys[None, :] <= rows[:, None]) & (rows[:, None] < n)
        place = (head + rows[:, None]) * n + keys[None, :]
        weights = tl.load(scores + place, is_seen, other=0.0)
        right = tl.load(
            v + (head + keys[:, None]) * T + d[None, :], keys[:, None] < n, other=0.0
        )
        total = tl.dot(weights.to(tl.float16), right, total)
    whole = tl.load(mass + head + rows, rows < n, other=1.0)
    places = (head + rows[:, None]) * T + d[None, :]
    tl.store(out + places, total / whole[:, None], rows[:, None] < n)
