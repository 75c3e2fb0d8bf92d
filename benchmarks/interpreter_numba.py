"""Runs the kernels of `interpreter.py` in numba's simulator; prints seconds as JSON."""

from __future__ import annotations

import json
import time

import numpy as np
from numba import cuda, float32


@cuda.jit
def _matmul(a, b, c, n):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 16 + y, cuda.blockIdx.x * 16 + x
    total = float32(0)
    for at in range(0, n, 16):
        left[y, x] = a[row, at + x] if row < n and at + x < n else 0
        right[y, x] = b[at + y, column] if column < n and at + y < n else 0
        cuda.syncthreads()
        for t in range(16):
            total += left[y, t] * right[t, x]
        cuda.syncthreads()
    if row < n and column < n:
        c[row, column] = total


@cuda.jit
def _transpose(given, out):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    i, j = cuda.blockIdx.x * 32 + x, cuda.blockIdx.y * 32 + y
    for r in range(0, 32, 8):
        tile[y + r, x] = given[j + r, i]
    cuda.syncthreads()
    i, j = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    for r in range(0, 32, 8):
        out[j + r, i] = tile[x, y + r]


@cuda.jit
def _sum(x, out):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    part[t] = x[cuda.blockIdx.x * 256 + t]
    cuda.syncthreads()
    step = 128
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def matmul(n: int) -> float:
    """Multiply two n x n matrices; give the seconds that it took."""
    a, b = np.random.default_rng(n).integers(-9, 9, (2, n, n)).astype(np.float32)
    out = np.zeros_like(a)
    began = time.perf_counter()
    side = -(-n // 16)
    _matmul[(side, side), (16, 16)](a, b, out, n)
    seconds = time.perf_counter() - began
    assert (out == a @ b).all()
    return seconds


def transpose(n: int) -> float:
    """Transpose an n x n matrix."""
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    out = np.zeros_like(a)
    began = time.perf_counter()
    _transpose[(n // 32, n // 32), (32, 8)](a, out)
    seconds = time.perf_counter() - began
    assert (out == a.T).all()
    return seconds


def total(n: int) -> float:
    """Sum n numbers, 256 in each block."""
    x = np.arange(n, dtype=np.float32) % 7
    out = np.zeros(n // 256, np.float32)
    began = time.perf_counter()
    _sum[n // 256, 256](x, out)
    seconds = time.perf_counter() - began
    assert out.sum() == x.sum()
    return seconds


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "matmul 33": matmul(33),
                "matmul 64": matmul(64),
                "transpose 128": transpose(128),
                "sum 4096": total(4096),
            }
        )
    )
