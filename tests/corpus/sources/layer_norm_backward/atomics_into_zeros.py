# Each program adds its eight rows by atomics, behind a launch that clears the results.
# launch: clear[ceil_div(width, 128)](dweight, dbias, width, 128)
# launch: both[ceil_div(rows, 8)](dy, x, weight, mean, rstd, dx, dweight, dbias, rows, width, next_power_of_2(width))
import triton
import triton.language as tl


@triton.jit
def clear(dweight, dbias, width, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(dweight + i, tl.zeros((B,), tl.float32), mask=i < width)
    tl.store(dbias + i, tl.zeros((B,), tl.float32), mask=i < width)


@triton.jit
def both(dy, x, weight, mean, rstd, dx, dweight, dbias, rows, width, B: tl.constexpr):
    i = tl.arange(0, B)
    inside = i < width
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    down = tl.zeros((B,), tl.float32)
    along = tl.zeros((B,), tl.float32)
    first = tl.program_id(0) * 8
    for row in range(first, min(first + 8, rows)):
        d = tl.load(dy + row * width + i, mask=inside, other=0.0).to(tl.float32)
        v = tl.load(x + row * width + i, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(rstd + row)
        hat = (v - tl.load(mean + row)) * scale
        g = d * w
        rest = g - tl.sum(g) / width - hat * (tl.sum(g * hat) / width)
        tl.store(dx + row * width + i, scale * rest, mask=inside)
        down += d * hat
        along += d
    tl.atomic_add(dweight + i, down, mask=inside)
    tl.atomic_add(dbias + i, along, mask=inside)
