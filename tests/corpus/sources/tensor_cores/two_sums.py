# Even and odd steps have a sum each, added at the end: another order, in FP32.
# launch: matmul[ceil_div(m, 32), ceil_div(n, 32)](a, b, c, m, n, k, num_warps=2)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k):
    i = tl.arange(0, 32)
    rows, columns = tl.program_id(0) * 32 + i, tl.program_id(1) * 32 + i
    rows_in, columns_in = (rows < m)[:, None], (columns < n)[None, :]
    even, odd = tl.zeros((32, 32), tl.float32), tl.zeros((32, 32), tl.float32)
    for begin in range(0, k, 64):
        for part in tl.static_range(2):
            d = begin + 32 * part + i
            left = tl.load(a + rows[:, None] * k + d, mask=rows_in & (d < k), other=0.0)
            right = tl.load(
                b + d[:, None] * n + columns,
                mask=(d < k)[:, None] & columns_in,
                other=0.0,
            )
            if part == 0:
                even = tl.dot(left, right, even)
            else:
                odd = tl.dot(left, right, odd)
    tl.store(
        c + rows[:, None] * n + columns[None, :], even + odd, mask=rows_in & columns_in
    )
