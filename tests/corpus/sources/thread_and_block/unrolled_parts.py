# A program unrolls four parts by tl.static_range, with 64-bit places.
# launch: add_relu[(ceil_div(n, 1024), 1)](x, y, out, n, PART=256)
import triton
import triton.language as tl

PARTS = tl.constexpr(4)


@triton.jit
def add_relu(x, y, out, n, PART: tl.constexpr):
    begin = tl.program_id(0).to(tl.int64) * PARTS * PART
    for part in tl.static_range(PARTS):
        i = begin + part * PART + tl.arange(0, PART)
        inside = i < n
        total = tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
        tl.store(out + i, tl.where(total < 0, 0.0, total), mask=inside)
