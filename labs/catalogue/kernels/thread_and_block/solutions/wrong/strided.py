# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024, num_warps=4)
import triton
import triton.language as tl


# right, but the elements of a program lie far from each other
@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, BLOCK) * tl.num_programs(0)
    inside = i < n
    total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    tl.store(out + i, tl.where(total < 0, 0.0, total), mask=inside)
