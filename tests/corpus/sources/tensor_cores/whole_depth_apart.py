# A constant that the rule computes says whether the depth needs a mask at all.
# launch: matmul[ceil_div(m, 16), ceil_div(n, 16)](a, b, c, m, n, k, REST=k % 16, num_warps=1)
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, REST: tl.constexpr):
    i, d = tl.arange(0, 16), tl.arange(0, 16)
    rows, columns = tl.program_id(0) * 16 + i, tl.program_id(1) * 16 + i
    has_row, has_column = rows[:, None] < m, columns[None, :] < n
    of_a, of_b = (
        a + rows[:, None] * k + d[None, :],
        b + d[:, None] * n + columns[None, :],
    )
    total = tl.zeros((16, 16), tl.float32)
    for begin in range(0, k - REST, 16):
        left = tl.load(of_a + begin, mask=has_row, other=0.0)
        right = tl.load(of_b + begin * n, mask=has_column, other=0.0)
        total = tl.dot(left, right, total)
    if REST > 0:
        begin = k - REST
        left = tl.load(of_a + begin, mask=has_row & (d[None, :] < REST), other=0.0)
        right = tl.load(
            of_b + begin * n, mask=has_column & (d[:, None] < REST), other=0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=has_row & has_column)
