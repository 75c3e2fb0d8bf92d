# launch: add_norm[rows](x, residual, weight, total, out, width, BLOCK=next_power_of_2(width), num_warps=8)
import triton
import triton.language as tl


@triton.jit
def add_norm(x, residual, weight, total, out, width, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < width
    row = tl.program_id(0) * width
    added = tl.load(x + row + i, mask=inside, other=0.0).to(tl.float32)
    added += tl.load(residual + row + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + row + i, added, mask=inside)
    factor = tl.rsqrt(tl.sum(added * added) / width + 1e-6)
    w = tl.load(weight + i, mask=inside).to(tl.float32)
    tl.store(out + row + i, added * factor * w, mask=inside)
