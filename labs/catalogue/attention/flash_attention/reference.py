# launch: attend[ceil_div(n, 128), heads](q, k, v, out, n, num_warps=4, num_stages=2)
import triton
import triton.language as tl

# the rows of q that a program has, the rows of k and v that it takes at a time
M = tl.constexpr(128)
N = tl.constexpr(64)
D = tl.constexpr(64)
# exp(s / 8) is exp2(s * log2(e) / 8), and exp2 is one instruction
SCALE = tl.constexpr(0.18033688011112042)


@triton.jit
def step(left, peak, mass, total, k, v, begin, rows, n, IS_WHOLE: tl.constexpr):
    keys = begin + tl.arange(0, N)
    d = tl.arange(0, D)
    across = k + keys[None, :] * D + d[:, None]
    down = v + keys[:, None] * D + d[None, :]
    if IS_WHOLE:
        scores = tl.dot(left, tl.load(across)) * SCALE
    else:
        scores = tl.dot(left, tl.load(across, keys[None, :] < n, other=0.0)) * SCALE
        scores = tl.where(keys[None, :] <= rows[:, None], scores, float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, axis=1))
    # what was summed below an older maximum is less under a new one
    fade = tl.exp2(peak - higher)
    weights = tl.exp2(scores - higher[:, None])
    mass = mass * fade + tl.sum(weights, axis=1)
    total = total * fade[:, None]
    if IS_WHOLE:
        right = tl.load(down)
    else:
        right = tl.load(down, keys[:, None] < n, other=0.0)
    total = tl.dot(weights.to(tl.float16), right, total)
    return higher, mass, total


@triton.jit
def attend(q, k, v, out, n):
    # the longest programs begin first, so that none of them is alone at the end
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * M
    head = tl.program_id(1) * n * D
    rows = first + tl.arange(0, M)
    places = head + rows[:, None] * D + tl.arange(0, D)[None, :]
    left = tl.load(q + places, mask=rows[:, None] < n, other=0.0)
    peak = tl.full((M,), float("-inf"), tl.float32)
    mass = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, D), tl.float32)
    # keys before the first row: every row sees all of them
    for begin in range(0, first, N):
        peak, mass, total = step(
            left, peak, mass, total, k + head, v + head, begin, rows, n, True
        )
    for begin in range(first, tl.minimum(first + M, n), N):
        peak, mass, total = step(
            left, peak, mass, total, k + head, v + head, begin, rows, n, False
        )
    tl.store(out + places, total / mass[:, None], mask=rows[:, None] < n)
