# Names of Triton come one by one and under others; four blocks for each program.
# launch: k[(ceil_div(n, 4096), 1, 1)](x, y, out, n=n, BLOCK=1024, PER=4, num_warps=4, num_stages=1)
import triton.language as T
from triton import jit
from triton.language import constexpr
from triton.language import load as get


@jit
def k(x, y, out, n, BLOCK: constexpr, PER: constexpr):
    base = T.program_id(0).to(T.int64) * (BLOCK * PER)
    for p in T.static_range(PER):
        i = base + p * BLOCK + T.arange(0, BLOCK)
        ok = i < n
        s = get(x + i, mask=ok, other=0) + get(y + i, mask=ok, other=0)
        T.store(out + i, T.maximum(s, 0.0, propagate_nan=T.PropagateNan.ALL), mask=ok)
