# The gradient of x as a product with rstd over width; partial sums of both kinds lie in turn.
# scratch: both float32[ceil_div(rows, 11) * width * 2]
# launch: rows_of[ceil_div(rows, 11)](dy, x, weight, mean, rstd, dx, both, rows, width, EACH=11, WIDE=next_power_of_2(width))
# launch: split[ceil_div(width, 256)](both, dweight, dbias, ceil_div(rows, 11), width)
import triton
import triton.language as tl


@triton.jit
def rows_of(
    dy,
    x,
    weight,
    mean,
    rstd,
    dx,
    both,
    rows,
    width,
    EACH: tl.constexpr,
    WIDE: tl.constexpr,
):
    j = tl.arange(0, WIDE)
    keep = j < width
    gain = tl.load(weight + j, mask=keep, other=1.0).to(tl.float32)
    down_weight = tl.full((WIDE,), 0.0, tl.float32)
    down_bias = tl.full((WIDE,), 0.0, tl.float32)
    for k in tl.static_range(EACH):
        row = tl.program_id(0) * EACH + k
        here = keep & (row < rows)
        d = tl.load(dy + row * width + j, mask=here, other=0.0).to(tl.float32)
        v = tl.load(x + row * width + j, mask=here, other=0.0).to(tl.float32)
        centre = tl.load(mean + row, mask=row < rows, other=0.0)
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)
        hat = (v - centre) * scale
        down_weight += d * hat
        down_bias += d
        d *= gain
        shift = tl.sum(d)
        along = tl.sum(d * hat)
        tl.store(
            dx + row * width + j,
            (d * width - shift - hat * along) * (scale / width),
            mask=here,
        )
    spot = both + (tl.program_id(0) * width + j) * 2
    tl.store(spot, down_weight, mask=keep)
    tl.store(spot + 1, down_bias, mask=keep)


@triton.jit
def split(both, dweight, dbias, count, width):
    j = tl.program_id(0) * 256 + tl.arange(0, 256)
    keep = j < width
    left = tl.full((256,), 0.0, tl.float32)
    right = tl.full((256,), 0.0, tl.float32)
    for r in range(count):
        spot = both + (r * width + j) * 2
        left += tl.load(spot, mask=keep, other=0.0)
        right += tl.load(spot + 1, mask=keep, other=0.0)
    tl.store(dweight + j, left, mask=keep)
    tl.store(dbias + j, right, mask=keep)
