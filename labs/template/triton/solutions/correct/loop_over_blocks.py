# launch: scale[min(ceil_div(n, 128), 8)](x, factor, out, n, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def scale(x, factor, out, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for begin in range(tl.program_id(0) * BLOCK, n, step):
        i = begin + tl.arange(0, BLOCK)
        inside = i < n
        tl.store(out + i, factor * tl.load(x + i, mask=inside), mask=inside)
