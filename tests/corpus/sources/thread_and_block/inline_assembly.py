# The maximum that keeps NaN, by PTX in the middle of Triton.
# launch: add_relu[ceil_div(n, 1024)](x, y, out, n, BLOCK=1024)
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n)
    total = tl.inline_asm_elementwise(
        "max.NaN.f32 $0, $1, 0f00000000;",
        "=f,f",
        [total],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + i, total, mask=i < n)
