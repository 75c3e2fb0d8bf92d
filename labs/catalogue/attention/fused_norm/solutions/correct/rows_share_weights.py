# launch: add_norm[ceil_div(rows, 4)](x, residual, weight, total, out, rows, width, BLOCK=next_power_of_2(width), num_warps=8)
import triton
import triton.language as tl

ROWS = tl.constexpr(4)


@triton.jit
def add_norm(x, residual, weight, total, out, rows, width, BLOCK: tl.constexpr):
    # the weights stay on the chip for some rows, one after the other
    i = tl.arange(0, BLOCK)
    inside = i < width
    w = tl.load(weight + i, mask=inside).to(tl.float32)
    first = tl.program_id(0) * ROWS
    for r in range(first, tl.minimum(first + ROWS, rows)):
        place = r * width + i
        added = tl.load(x + place, mask=inside, other=0.0)
        added += tl.load(residual + place, mask=inside, other=0.0)
        tl.store(total + place, added, mask=inside)
        wide = added.to(tl.float32)
        mean = tl.sum(wide * wide) / width
        tl.store(out + place, wide / tl.sqrt(mean + 1e-6) * w, mask=inside)
