# A row is held as two halves of the block, whose sums are added up.
# launch: add_norm[rows](x, residual, weight, total, out, width, HALF=next_power_of_2(ceil_div(width, 2)), num_warps=4)
import triton
import triton.language as tl


@triton.jit
def half(x, residual, total, begin, width, place, HALF: tl.constexpr):
    i = begin + tl.arange(0, HALF)
    v = tl.load(x + place + i, mask=i < width, other=0.0)
    v += tl.load(residual + place + i, mask=i < width, other=0.0)
    tl.store(total + place + i, v, mask=i < width)
    return v.to(tl.float32)


@triton.jit
def finish(v, scale, weight, out, begin, width, place, HALF: tl.constexpr):
    i = begin + tl.arange(0, HALF)
    w = tl.load(weight + i, mask=i < width, other=0.0).to(tl.float32)
    tl.store(out + place + i, v * scale * w, mask=i < width)


@triton.jit
def add_norm(x, residual, weight, total, out, width, HALF: tl.constexpr):
    place = tl.program_id(0) * width
    low = half(x, residual, total, 0, width, place, HALF)
    high = half(x, residual, total, HALF, width, place, HALF)
    squares = tl.sum(low * low) + tl.sum(high * high)
    scale = tl.rsqrt(squares / width + 1e-6)
    finish(low, scale, weight, out, 0, width, place, HALF)
    finish(high, scale, weight, out, HALF, width, place, HALF)
