# Programs of eight rows add their sums to the results by atomics, which a launch before has cleared.
# launch: clear[ceil_div(width, 512)](dweight, dbias, width)
# launch: backward[ceil_div(rows, 8)](dy, x, weight, mean, rstd, dx, dweight, dbias, rows, width, BLOCK=next_power_of_2(width))
import triton
import triton.language as tl


@triton.jit
def clear(dweight, dbias, width):
    i = tl.program_id(0) * 512 + tl.arange(0, 512)
    tl.store(dweight + i, tl.zeros((512,), tl.float32), mask=i < width)
    tl.store(dbias + i, tl.zeros((512,), tl.float32), mask=i < width)


@triton.jit
def backward(
    dy, x, weight, mean, rstd, dx, dweight, dbias, rows, width, BLOCK: tl.constexpr
):
    i = tl.arange(0, BLOCK)
    inside = i < width
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    for_weight = tl.zeros((BLOCK,), tl.float32)
    for_bias = tl.zeros((BLOCK,), tl.float32)
    first = tl.program_id(0) * 8
    for row in range(first, tl.minimum(first + 8, rows)):
        d = tl.load(dy + row * width + i, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        xhat = (v - tl.load(mean + row)) * scale
        for_weight += d * xhat
        for_bias += d
        g = d * w
        two = tl.sum(g) + xhat * tl.sum(g * xhat)
        tl.store(dx + row * width + i, (g - two / width) * scale, mask=inside)
    tl.atomic_add(dweight + i, for_weight, mask=inside)
    tl.atomic_add(dbias + i, for_bias, mask=inside)
