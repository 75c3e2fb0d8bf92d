"""A product of int8 matrices, as cuBLAS offers it."""

import torch


def int8_matmul(a, b):
    """Multiply m x k by k x n in int8, and add up in int32.

    m must be more than 16, and 8 must divide k and n: what tensor cores are given by
    cuBLAS, which is asked here on every machine.
    """
    (m, k), n = a.shape, b.shape[1]
    if m <= 16 or k % 8 or n % 8:
        raise ValueError(
            f"{m} x {k} times {k} x {n}: there must be more than 16 rows, and 8 must "
            "divide both other sides"
        )
    # cuBLAS wants rows of a and columns of b that lie in one piece
    return torch._int_mm(a.contiguous(), b.t().contiguous().t())
