# The block is loaded from its end, and tl.gather puts each element back into its place.
# launch: add_relu[(ceil_div(n, 512), 1)](x, y, out, n, BLOCK=512)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    begin = tl.program_id(axis=0) * BLOCK
    # lane 0 has the last element, and BLOCK - 1 - lane is where an element lies
    back = begin + (BLOCK - 1 - lanes)
    total = tl.load(x + back, mask=back < n) + tl.load(y + back, mask=back < n)
    total = tl.gather(total, BLOCK - 1 - lanes, axis=0)
    kept = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + begin + lanes, kept, mask=begin + lanes < n)
