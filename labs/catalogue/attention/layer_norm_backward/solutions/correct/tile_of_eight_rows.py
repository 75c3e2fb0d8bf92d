# Eight rows in a row are a tile, which is summed along both of its sides.
# scratch: parts float32[2 * ceil_div(rows, 8) * width]
# launch: tile[ceil_div(rows, 8)](dy, x, weight, mean, rstd, dx, parts, rows, width, WIDE=next_power_of_2(width), num_warps=8)
# launch: columns[ceil_div(width, 32), 2](parts, dweight, dbias, ceil_div(rows, 8), width)
import triton
import triton.language as tl

ROWS = tl.constexpr(8)


@triton.jit
def tile(dy, x, weight, mean, rstd, dx, parts, rows, width, WIDE: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, WIDE)[None, :]
    place = row * width + column
    inside = (row < rows) & (column < width)
    d = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    scale = tl.load(rstd + row, mask=row < rows, other=0.0)
    xhat = (v - tl.load(mean + row, mask=row < rows, other=0.0)) * scale
    g = d * w
    m = tl.sum(g, axis=1, keep_dims=True) / width
    p = tl.sum(g * xhat, axis=1, keep_dims=True) / width
    tl.store(dx + place, (g - m - xhat * p) * scale, mask=inside)
    i = tl.arange(0, WIDE)
    base = parts + tl.program_id(0) * width
    tl.store(base + i, tl.sum(d * xhat, axis=0), mask=i < width)
    base += tl.num_programs(0) * width
    tl.store(base + i, tl.sum(d, axis=0), mask=i < width)


@triton.jit
def columns(parts, dweight, dbias, count, width):
    # the second side of the grid says which of the two sums
    which = tl.program_id(1)
    column = tl.program_id(0) * 32 + tl.arange(0, 32)
    total = tl.zeros((32,), tl.float32)
    for first in range(0, count, 16):
        part = first + tl.arange(0, 16)[:, None]
        inside = (part < count) & (column < width)[None, :]
        total += tl.sum(
            tl.load(
                parts + (which * count + part) * width + column[None, :],
                mask=inside,
                other=0.0,
            ),
            axis=0,
        )
    if which == 0:
        tl.store(dweight + column, total, mask=column < width)
    else:
        tl.store(dbias + column, total, mask=column < width)
