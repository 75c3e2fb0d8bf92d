# Four programs share out the depth and leave their parts, which a second launch sums up.
# scratch: parts float32[4 * m * n]
# launch: multiply[(ceil_div(m, 32), ceil_div(n, 32), 4)](a, b, parts, m, n, k, SIDE=32, DEPTH=16)
# launch: join[ceil_div(m * n, 256)](parts, c, m * n, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def multiply(a, b, parts, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * SIDE + tl.arange(0, SIDE)[:, None]
    columns = tl.program_id(1) * SIDE + tl.arange(0, SIDE)[None, :]
    each = tl.cdiv(k, 4 * DEPTH) * DEPTH
    begin = tl.program_id(2) * each
    end = tl.minimum(begin + each, k)
    total = tl.zeros((SIDE, SIDE), tl.float32)
    while begin < end:
        d = begin + tl.arange(0, DEPTH)
        left = tl.load(a + rows * k + d[None, :], (rows < m) & (d[None, :] < end), 0.0)
        right = tl.load(
            b + d[:, None] * n + columns, (d[:, None] < end) & (columns < n), 0.0
        )
        total += tl.dot(left, right)
        begin += DEPTH
    to = parts + tl.program_id(2) * m * n + rows * n + columns
    tl.store(to, total, mask=(rows < m) & (columns < n))


@triton.jit
def join(parts, c, length, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    every = parts + tl.arange(0, 4)[:, None] * length + i
    total = tl.sum(tl.load(every, mask=i < length, other=0.0), axis=0, keep_dims=True)
    tl.store(c + i, total, mask=i < length)
