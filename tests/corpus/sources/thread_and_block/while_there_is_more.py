# A while loop, whose pointers move along.
# launch: add_relu[min(5, ceil_div(n, 512))](x, y, out, n, BLOCK=512)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    begin = tl.program_id(0) * BLOCK
    lanes = tl.arange(0, BLOCK)
    x += lanes
    y += lanes
    out += lanes
    while begin < n:
        inside = lanes < n - begin
        total = tl.load(x + begin, mask=inside) + tl.load(y + begin, mask=inside)
        tl.store(out + begin, tl.where(total < 0.0, 0.0, total), mask=inside)
        begin += tl.num_programs(0) * BLOCK
