# scratch: part_weight float32[min(ceil_div(rows, 8), 264) * width]
# scratch: part_bias float32[min(ceil_div(rows, 8), 264) * width]
# launch: backward[min(ceil_div(rows, 8), 264)](dy, x, weight, mean, rstd, dx, part_weight, part_bias, rows, width, BLOCK=next_power_of_2(width), num_warps=8)
# launch: merge[ceil_div(width, 128)](part_weight, part_bias, dweight, dbias, min(ceil_div(rows, 8), 264), width, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def backward(
    dy,
    x,
    weight,
    mean,
    rstd,
    dx,
    part_weight,
    part_bias,
    rows,
    width,
    BLOCK: tl.constexpr,
):
    i = tl.arange(0, BLOCK)
    inside = i < width
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    # this program's own sums, in registers over all of its rows
    for_weight = tl.zeros((BLOCK,), tl.float32)
    for_bias = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        place = row * width + i
        d = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        xhat = (v - tl.load(mean + row)) * scale
        # d is 0 behind the end, so all products with it are, too
        g = d * w
        m = tl.sum(g) / width
        p = tl.sum(g * xhat) / width
        tl.store(dx + place, (g - m - xhat * p) * scale, mask=inside)
        for_weight += d * xhat
        for_bias += d
    mine = tl.program_id(0) * width + i
    tl.store(part_weight + mine, for_weight, mask=inside)
    tl.store(part_bias + mine, for_bias, mask=inside)


@triton.jit
def merge(part_weight, part_bias, dweight, dbias, parts, width, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < width
    for_weight = tl.zeros((BLOCK,), tl.float32)
    for_bias = tl.zeros((BLOCK,), tl.float32)
    for part in range(parts):
        for_weight += tl.load(part_weight + part * width + i, mask=inside, other=0.0)
        for_bias += tl.load(part_bias + part * width + i, mask=inside, other=0.0)
    tl.store(dweight + i, for_weight, mask=inside)
    tl.store(dbias + i, for_bias, mask=inside)
