# tl.maximum with the option that keeps NaN.
# launch: add_relu[ceil_div(n, 512)](x, y, out, n, BLOCK=512, num_warps=2)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = i < n
    total = tl.load(x + i, here) + tl.load(y + i, here)
    total = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + i, total, here)
