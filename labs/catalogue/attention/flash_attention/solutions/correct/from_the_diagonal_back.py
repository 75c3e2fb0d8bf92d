# launch: attend[ceil_div(n, 64), heads](q, k, v, out, n, num_stages=1)
import triton
import triton.language as tl

M = tl.constexpr(64)
D = tl.constexpr(64)
SCALE = tl.constexpr(0.18033688011112042)


@triton.jit
def attend(q, k, v, out, n):
    head = tl.program_id(1) * n * D
    block = tl.program_id(0)
    row = tl.arange(0, M)[:, None]
    column = tl.arange(0, D)[None, :]
    places = head + (block * M + row) * D + column
    is_row = block * M + row < n
    left = tl.load(q + places, mask=is_row, other=0.0)
    # the tile on the diagonal: every row sees its own key, so each has a maximum
    keys = tl.load(k + places, mask=is_row, other=0.0)
    scores = tl.dot(left, tl.trans(keys)) * SCALE
    scores = tl.where(tl.trans(row) <= row, scores, float("-inf"))
    peak = tl.max(scores, axis=1, keep_dims=True)
    weights = tl.exp2(scores - peak)
    mass = tl.sum(weights, axis=1, keep_dims=True)
    right = tl.load(v + places, mask=is_row, other=0.0)
    total = tl.dot(weights.to(tl.float16), right)
    for back in range(0, block):
        seen = head + ((block - 1 - back) * M + row) * D + column
        scores = tl.dot(left, tl.trans(tl.load(k + seen))) * SCALE
        higher = tl.maximum(peak, tl.max(scores, axis=1, keep_dims=True))
        weights = tl.exp2(scores - higher)
        fade = tl.exp2(peak - higher)
        mass = mass * fade + tl.sum(weights, axis=1, keep_dims=True)
        total = tl.dot(weights.to(tl.float16), tl.load(v + seen), total * fade)
        peak = higher
    tl.store(out + places, total / mass, mask=is_row)
