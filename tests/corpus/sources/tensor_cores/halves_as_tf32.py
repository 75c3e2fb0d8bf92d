# Halves are widened and multiplied as TF32, which has all of their bits.
# launch: matmul[ceil_div(m, 32), ceil_div(n, 32)](a, b, c, m, n, k, SIDE=32, DEPTH=32)
import triton
import triton.language as tl


@triton.jit
def wide(of, rows, columns, height, width):
    inside = (rows < height) & (columns < width)
    return tl.load(of + rows * width + columns, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def matmul(a, b, c, m, n, k, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    rows = (tl.program_id(0) * SIDE + tl.arange(0, SIDE))[:, None]
    columns = (tl.program_id(1) * SIDE + tl.arange(0, SIDE))[None, :]
    total = tl.full((SIDE, SIDE), 0, tl.float32)
    for begin in range(0, k, DEPTH):
        left = wide(a, rows, (begin + tl.arange(0, DEPTH))[None, :], m, k)
        right = wide(b, (begin + tl.arange(0, DEPTH))[:, None], columns, k, n)
        total = tl.dot(left, right, acc=total, input_precision="tf32")
    tl.store(c + rows * n + columns, total, mask=(rows < m) & (columns < n))
