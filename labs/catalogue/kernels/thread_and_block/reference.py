# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024, num_warps=4)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    tl.store(out + i, tl.where(total < 0, 0.0, total), mask=inside)
