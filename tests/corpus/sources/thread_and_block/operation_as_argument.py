# The operation is handed on as a constant, and gives a tuple of number and condition.
# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024, num_warps=2)
import triton
import triton.language as tl


@triton.jit
def relu(v):
    return v, (v >= 0) | (v != v)


@triton.jit
def zipped(operation: tl.constexpr, x, y, out, i, inside):
    number, keeps = operation(tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside))
    tl.store(out + i, tl.where(keeps, number, tl.zeros_like(number)), mask=inside)


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0)
    tl.assume(n > 0)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zipped(relu, x, y, out, i, i < n)
