# Sixteen rows one after the other; g is centred and scaled in the order of the formula's derivation.
# scratch: part float32[ceil_div(rows, 16) * 2 * width]
# launch: pieces[ceil_div(rows, 16), 1](x, dy, rstd, mean, weight, part, dx, width, rows, 16, BLOCK=next_power_of_2(width), num_warps=4)
# launch: add_up[ceil_div(2 * width, 64)](part, dweight, dbias, width, ceil_div(rows, 16))
import triton
import triton.language as tl


@triton.jit
def normal(x, mean, rstd, row, width, i):
    v = tl.load(x + row * width + i, mask=i < width, other=0.0)
    return (v.to(tl.float32) - tl.load(mean + row)) * tl.load(rstd + row)


@triton.jit
def pieces(x, dy, rstd, mean, weight, part, dx, width, rows, each, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    w = tl.load(weight + i, mask=i < width, other=0.0).to(tl.float32)
    begin = tl.program_id(0) * each
    bias_sum = w * 0.0
    weight_sum = w * 0.0
    for row in range(begin, tl.minimum(begin + each, rows)):
        hat = tl.where(i < width, normal(x, mean, rstd, row, width, i), 0.0)
        d = tl.load(dy + row * width + i, mask=i < width, other=0.0).to(tl.float32)
        bias_sum += d
        weight_sum += hat * d
        g = w * d
        both = tl.sum(g * hat) / width * hat + tl.sum(g) / width
        tl.store(
            dx + row * width + i,
            ((g - both) * tl.load(rstd + row)).to(tl.float16),
            mask=i < width,
        )
    # a row of both sums, one behind the other
    own = part + tl.program_id(0) * (2 * width)
    tl.store(own + i, weight_sum, mask=i < width)
    tl.store(own + width + i, bias_sum, mask=i < width)


@triton.jit
def add_up(part, dweight, dbias, width, count):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    for row in range(count):
        total += tl.load(part + row * (2 * width) + i, mask=i < 2 * width, other=0.0)
    tl.store(dweight + i, total, mask=i < width)
    tl.store(dbias + (i - width), total, mask=(i >= width) & (i < 2 * width))
