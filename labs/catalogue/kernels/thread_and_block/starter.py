# launch: add_relu[1](x, y, out, n, BLOCK=1024, num_warps=4)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    # One program handles 1024 elements. What about the others, and where does x end?
    total = tl.load(x + i) + tl.load(y + i)
    tl.store(out + i, total)
