# launch: along[rows](dy, x, weight, mean, rstd, dx, width, BLOCK=next_power_of_2(width), num_warps=8)
# launch: down[ceil_div(width, 64)](dy, x, mean, rstd, dweight, dbias, rows, width)
import triton
import triton.language as tl


@triton.jit
def along(dy, x, weight, mean, rstd, dx, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < width
    d = tl.load(dy + row * width + i, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    scale = tl.load(rstd + row)
    xhat = (v - tl.load(mean + row)) * scale
    g = d * w
    m = tl.sum(g) / width
    p = tl.sum(g * xhat) / width
    tl.store(dx + row * width + i, (g - m - xhat * p) * scale, mask=inside)


# right, but x and dy are read once more
@triton.jit
def down(dy, x, mean, rstd, dweight, dbias, rows, width):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    inside = i < width
    for_weight = tl.zeros((64,), tl.float32)
    for_bias = tl.zeros((64,), tl.float32)
    for row in range(rows):
        d = tl.load(dy + row * width + i, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32)
        for_weight += d * (v - tl.load(mean + row)) * tl.load(rstd + row)
        for_bias += d
    tl.store(dweight + i, for_weight, mask=inside)
    tl.store(dbias + i, for_bias, mask=inside)
