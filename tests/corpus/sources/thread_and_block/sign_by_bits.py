# Below zero is told by the bits, and NaN lies beyond minus infinity.
# launch: add_relu[ceil_div(n, 256)](x, y, out, n, BLOCK=256, num_warps=4, num_stages=1)
import triton
import triton.language as tl

SIGN = tl.constexpr(0x80000000)
LOWEST = tl.constexpr(0xFF800000)


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i, mask=i < n, other=0.0) + tl.load(
        y + i, mask=i < n, other=0.0
    )
    bits = total.to(tl.uint32, bitcast=True)
    is_below = (bits >= SIGN) & (bits <= LOWEST)
    tl.store(
        out + i, tl.where(is_below, 0, bits).to(tl.float32, bitcast=True), mask=i < n
    )
