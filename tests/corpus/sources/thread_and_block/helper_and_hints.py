# A function of its own for the operation, and hints of how places lie.
# launch: add_relu[ceil_div(n, 2048)](x, y, out, n, BLOCK=2048, num_warps=8)
import triton
import triton.language as tl


@triton.jit
def relu(v):
    is_nan = v != v
    return tl.where(is_nan | (v > 0), v, 0.0)


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    begin = tl.multiple_of(tl.program_id(0) * BLOCK, BLOCK)
    i = tl.max_contiguous(begin + tl.arange(0, BLOCK), BLOCK)
    inside = i < n
    left = tl.load(x + i, mask=inside, other=0.0, eviction_policy="evict_first")
    right = tl.load(y + i, mask=inside, other=0.0, cache_modifier=".cg")
    tl.store(out + i, relu(left + right), mask=inside)
