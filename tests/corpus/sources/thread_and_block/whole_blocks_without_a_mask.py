# One launch for all whole blocks, which have no mask, and another for what is left.
# launch: whole[max(1, n / 512)](x, y, out, n, BLOCK=512)
# launch: rest[1](x, y, out, n, BLOCK=512, num_warps=1)
import triton
import triton.language as tl


@triton.jit
def relu_of_sum(a, b):
    total = a + b
    return tl.where(total < 0, 0.0, total)


@triton.jit
def whole(x, y, out, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    if begin + BLOCK > n:
        return
    i = tl.max_contiguous(begin + tl.arange(0, BLOCK), BLOCK)
    a = tl.load(x + i, cache_modifier=".cg", eviction_policy="evict_first")
    b = tl.load(y + i, cache_modifier=".cg", eviction_policy="evict_first")
    tl.store(out + i, relu_of_sum(a, b), cache_modifier=".cs")


@triton.jit
def rest(x, y, out, n, BLOCK: tl.constexpr):
    i = n // BLOCK * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, relu_of_sum(tl.load(x + i, i < n), tl.load(y + i, i < n)), i < n)
