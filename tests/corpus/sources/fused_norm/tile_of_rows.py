# A program has a tile of two rows, and sums along one side of it.
# launch: add_norm[ceil_div(rows, 2)](x, residual, weight, total, out, rows, width, WIDE=next_power_of_2(width), num_warps=8)
import triton
import triton.language as tl

ROWS = tl.constexpr(2)


@triton.jit
def add_norm(x, residual, weight, total, out, rows, width, WIDE: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, WIDE)[None, :]
    inside = (row < rows) & (column < width)
    place = row * width + column
    left = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    added = left + right
    tl.store(total + place, added.to(tl.float16), mask=inside)
    mean = tl.sum(added * added, axis=1, keep_dims=True) / width
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    normed = added / tl.sqrt(mean + 1e-6) * w
    tl.store(out + place, normed.to(tl.float16), mask=inside)
