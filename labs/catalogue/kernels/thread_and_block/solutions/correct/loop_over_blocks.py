# launch: add_relu[ceil_div(n, 4096)](x, y, out, n, BLOCK=1024)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    # fewer programs, each of which takes one block after the other
    step = tl.num_programs(0) * BLOCK
    for first in range(tl.program_id(0) * BLOCK, n, step):
        i = first + tl.arange(0, BLOCK)
        total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
        tl.store(out + i, tl.where(total < 0, 0.0, total), mask=i < n)
