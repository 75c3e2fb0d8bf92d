# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024, num_warps=4)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    # as if a program were a thread: it adds one element
    i = tl.program_id(0)
    if i < n:
        total = tl.load(x + i) + tl.load(y + i)
        tl.store(out + i, tl.where(total < 0, 0.0, total))
