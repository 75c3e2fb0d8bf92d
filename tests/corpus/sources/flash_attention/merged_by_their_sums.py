# Each tile is a softmax of its own, and a function merges two results by their sums.
# launch: attend[ceil_div(n, 64) * heads](q, k, v, out, n, num_stages=1)
import triton
import triton.language as tl

T = tl.constexpr(64)


@triton.jit
def read(matrix, first, n):
    r = first + tl.arange(0, T)[:, None]
    return tl.load(matrix + r * T + tl.arange(0, T)[None, :], mask=r < n, other=0.0)


@triton.jit
def merged(result, top, mass, other, other_top, other_mass):
    higher = tl.maximum(top, other_top)
    one = mass * tl.exp(top - higher)
    two = other_mass * tl.exp(other_top - higher)
    both = one + two
    mean = result * (one / both)[:, None] + other * (two / both)[:, None]
    return mean, higher, both


@triton.jit
def tile(queries, k, v, first, n, block):
    scores = tl.dot(queries, tl.trans(read(k, first, n))) / 8
    if first == block * T:
        seen = tl.arange(0, T)
        scores += tl.where(seen[None, :] <= seen[:, None], 0.0, float("-inf"))
    top = tl.max(scores, axis=1)
    weights = tl.exp(scores - top[:, None])
    mass = tl.sum(weights, axis=1)
    result = tl.dot(weights.to(tl.float16), read(v, first, n)) / mass[:, None]
    return result, top, mass


@triton.jit
def attend(q, k, v, out, n):
    blocks = tl.cdiv(n, T)
    block = tl.program_id(0) % blocks
    head = tl.program_id(0) // blocks * n * T
    queries = read(q + head, block * T, n)
    result, top, mass = tile(queries, k + head, v + head, 0, n, block)
    for first in range(T, (block + 1) * T, T):
        other, its_top, its_mass = tile(queries, k + head, v + head, first, n, block)
        result, top, mass = merged(result, top, mass, other, its_top, its_mass)
    r = block * T + tl.arange(0, T)[:, None]
    tl.store(out + head + r * T + tl.arange(0, T)[None, :], result, mask=r < n)
