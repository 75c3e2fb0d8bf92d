"""Runs the kernels of `interpreter.py` in our interpreter; prints seconds as JSON."""

from __future__ import annotations

import json
import time

import numpy as np

from warpbook_labs.compiler.nvrtc import compile_to_ptx
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine

MATMUL = """
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int at = 0; at < n; at += 16) {
        left[y][x] = row < n && at + x < n ? a[row * n + at + x] : 0;
        right[y][x] = column < n && at + y < n ? b[(at + y) * n + column] : 0;
        __syncthreads();
        for (int t = 0; t < 16; t++) sum += left[y][t] * right[t][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}"""
TRANSPOSE = """
extern "C" __global__ void transpose(const float* from, float* to, int n) {
    __shared__ float tile[32][33];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    for (int r = 0; r < 32; r += 8)
        tile[threadIdx.y + r][threadIdx.x] = from[(j + r) * n + i];
    __syncthreads();
    i = blockIdx.y * 32 + threadIdx.x;
    j = blockIdx.x * 32 + threadIdx.y;
    for (int r = 0; r < 32; r += 8)
        to[(j + r) * n + i] = tile[threadIdx.x][threadIdx.y + r];
}"""
SUM = """
extern "C" __global__ void sum(const float* x, float* out) {
    __shared__ float part[256];
    int t = threadIdx.x;
    part[t] = x[blockIdx.x * 256 + t];
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}"""


def matmul(n: int) -> float:
    """Multiply two n x n matrices; give the seconds that it took."""
    a, b = np.random.default_rng(n).integers(-9, 9, (2, n, n)).astype(np.float32)
    began = time.perf_counter()
    machine = Machine(compile_to_ptx(MATMUL).ptx)
    out = machine.empty("c", a.nbytes)
    buffers = [machine.put("a", a), machine.put("b", b), out]
    side = -(-n // 16)
    machine.run("matmul", (side, side, 1), (16, 16, 1), [*buffers, n])
    seconds = time.perf_counter() - began
    assert (machine.read(out, np.float32).reshape(n, n) == a @ b).all()
    return seconds


def transpose(n: int) -> float:
    """Transpose an n x n matrix."""
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    began = time.perf_counter()
    machine = Machine(compile_to_ptx(TRANSPOSE).ptx)
    given, out = machine.put("from", a), machine.empty("to", a.nbytes)
    machine.run("transpose", (n // 32, n // 32, 1), (32, 8, 1), [given, out, n])
    seconds = time.perf_counter() - began
    assert (machine.read(out, np.float32).reshape(n, n) == a.T).all()
    return seconds


def total(n: int) -> float:
    """Sum n numbers, 256 in each block."""
    x = np.arange(n, dtype=np.float32) % 7
    began = time.perf_counter()
    machine = Machine(compile_to_ptx(SUM).ptx)
    given, out = machine.put("x", x), machine.empty("out", n // 64)
    machine.run("sum", (n // 256, 1, 1), (256, 1, 1), [given, out])
    seconds = time.perf_counter() - began
    assert machine.read(out, np.float32).sum() == x.sum()
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
