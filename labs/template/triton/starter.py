# launch: scale[1](x, factor, out, n, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def scale(x, factor, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    # One program has 256 elements. What about the others, and where does x end?
    tl.store(out + i, factor * tl.load(x + i))
