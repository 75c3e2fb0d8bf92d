# Places are counted: a scan over ones, with a function of its own, from the program's begin.
# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024)
import triton
import triton.language as tl


@triton.jit
def added(a, b):
    return a + b


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    step = tl.where(tl.arange(0, BLOCK) == 0, tl.program_id(0) * BLOCK, 1)
    i = tl.associative_scan(step, 0, added)
    total = tl.fma(tl.load(x + i, mask=i < n), 1.0, tl.load(y + i, mask=i < n))
    tl.store(out + i, tl.where(total < 0, 0.0, total), mask=i < n)
