# Scores are k times q, with keys down and rows across, and the result is turned when stored.
# launch: attend[heads, ceil_div(n, 32)](q, k, v, out, n, M=32, N=32, num_stages=2)
import triton
import triton.language as tl

D = tl.constexpr(64)


@triton.jit
def attend(q, k, v, out, n, M: tl.constexpr, N: tl.constexpr):
    head = tl.program_id(0) * n
    first = tl.program_id(1) * M
    rows = first + tl.arange(0, M)
    d = tl.arange(0, D)
    turned = (head + rows)[None, :] * D + d[:, None]
    queries = tl.load(q + turned, mask=(rows < n)[None, :], other=0.0)
    peak = tl.full((M,), -float("inf"), tl.float32)
    mass = tl.full((M,), 0.0, tl.float32)
    total = tl.zeros((D, M), tl.float32)
    for begin in range(0, first + M, N):
        keys = begin + tl.arange(0, N)
        places = (head + keys)[:, None] * D + d[None, :]
        is_key = (keys < n)[:, None]
        fit = tl.dot(tl.load(k + places, mask=is_key, other=0.0), queries) * 0.125
        fit = tl.where(keys[:, None] > rows[None, :], -float("inf"), fit)
        higher = tl.maximum(tl.max(fit, axis=0), peak)
        weights = tl.exp(fit - higher[None, :])
        fade = tl.exp(peak - higher)
        mass = fade * mass + tl.sum(weights, axis=0)
        values = tl.load(v + places, mask=is_key, other=0.0)
        total = total * fade[None, :]
        total += tl.dot(tl.trans(values), weights.to(tl.float16))
        peak = higher
    tl.store(out + turned, total / mass[None, :], mask=(rows < n)[None, :])
