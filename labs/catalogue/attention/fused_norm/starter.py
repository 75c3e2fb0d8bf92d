# scratch: scale float32[rows]
# launch: add[rows](x, residual, total, width, BLOCK=1024)
# launch: measure[rows](total, scale, width, BLOCK=1024)
# launch: normalise[rows](total, scale, weight, out, width, BLOCK=1024)
import triton
import triton.language as tl

# Right, but each kernel writes to memory what the next one reads. Make one of them.


@triton.jit
def add(x, residual, total, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    for begin in range(0, width, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < width
        left = tl.load(x + row + i, mask=inside)
        right = tl.load(residual + row + i, mask=inside)
        tl.store(total + row + i, left + right, mask=inside)


@triton.jit
def measure(total, scale, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    squares = tl.zeros((BLOCK,), tl.float32)
    for begin in range(0, width, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        v = tl.load(total + row + i, mask=i < width, other=0.0).to(tl.float32)
        squares += v * v
    mean = tl.sum(squares) / width
    tl.store(scale + tl.program_id(0), tl.rsqrt(mean + 1e-6))


@triton.jit
def normalise(total, scale, weight, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    factor = tl.load(scale + tl.program_id(0))
    for begin in range(0, width, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        inside = i < width
        v = tl.load(total + row + i, mask=inside).to(tl.float32)
        w = tl.load(weight + i, mask=inside).to(tl.float32)
        tl.store(out + row + i, v * factor * w, mask=inside)
