"""Kernels give what they would on a GPU, and are counted as the hardware would."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    BadLaunch,
    PtxError,
    Unsupported,
)

RANDOM = np.random.default_rng(7)

POINTWISE = """
extern "C" __global__ void gelu(const float* x, float* y, long long n) {
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        y[i] = 0.5f * x[i]
            * (1 + tanhf(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}"""
MATMUL = """
extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int m, int n, int k) {
    __shared__ float left[16][16], right[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        int i = at + threadIdx.x, j = at + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && i < k ? a[row * k + i] : 0;
        right[threadIdx.y][threadIdx.x] = column < n && j < k ? b[j * n + column] : 0;
        __syncthreads();
        for (int t = 0; t < 16; t++)
            sum = fmaf(left[threadIdx.y][t], right[t][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}"""
REDUCE = """
extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float part[32];
    float v = 0;
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        v += x[i];
    for (int offset = 16; offset; offset /= 2) v += __shfl_down_sync(~0u, v, offset);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
        if (threadIdx.x == 0) atomicAdd(out, v);
    }
}"""
TRANSPOSE = """
extern "C" __global__ void transpose(const float* x, float* y, int w, int h) {
    __shared__ float tile[32][32 + PAD];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
    for (int r = 0; r < 32; r += 8)
        if (i < w && j + r < h) tile[threadIdx.y + r][threadIdx.x] = x[(j + r) * w + i];
    __syncthreads();
    i = blockIdx.y * 32 + threadIdx.x; j = blockIdx.x * 32 + threadIdx.y;
    for (int r = 0; r < 32; r += 8)
        if (i < h && j + r < w) y[(j + r) * h + i] = tile[threadIdx.x][threadIdx.y + r];
}"""


def test_a_pointwise_kernel_handles_every_tail_and_special_value() -> None:
    m = machine(POINTWISE)
    x = RANDOM.standard_normal(1009).astype(np.float32) * 4
    x[:6] = [np.nan, np.inf, -np.inf, -0.0, 1e-42, 88.0]
    given, got = m.put("x", x), m.empty("y", x.nbytes)
    report = m.run("gelu", (3, 1, 1), (128, 1, 1), [given, got, len(x)])
    assert report.findings == []
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        inner = 0.79788456 * (wide + 0.044715 * wide**3)
        want = 0.5 * wide * (1 + np.tanh(inner))
    np.testing.assert_allclose(m.read(got, np.float32), want, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (33, 17, 29), (48, 40, 64)])
def test_a_tiled_matmul_is_exact_on_whole_numbers(shape: tuple[int, int, int]) -> None:
    m, (rows, columns, depth) = machine(MATMUL), shape
    a = RANDOM.integers(-9, 9, (rows, depth)).astype(np.float32)
    b = RANDOM.integers(-9, 9, (depth, columns)).astype(np.float32)
    left, right, out = m.put("a", a), m.put("b", b), m.empty("c", 4 * rows * columns)
    grid = (-(-columns // 16), -(-rows // 16), 1)
    report = m.run(
        "matmul", grid, (16, 16, 1), [left, right, out, rows, columns, depth]
    )
    assert report.findings == []
    np.testing.assert_array_equal(m.read(out, np.float32).reshape(rows, columns), a @ b)


def test_shuffles_and_atomics_add_up_in_many_blocks() -> None:
    m = machine(REDUCE)
    x = RANDOM.integers(-50, 50, 10_007).astype(np.float32)
    given, out = m.put("x", x), m.put("out", np.zeros(1, np.float32))
    report = m.run("sum", (70, 1, 1), (96, 1, 1), [given, out, len(x)])
    assert report.findings == []
    assert m.read(out, np.float32)[0] == x.sum()


@pytest.mark.parametrize(("pad", "passes"), [(0, 31), (1, 0)])
def test_a_transposes_bank_conflicts_are_counted_with_their_line(
    pad: int, passes: int
) -> None:
    m = machine(TRANSPOSE.replace("PAD", str(pad)))
    x = RANDOM.standard_normal((64, 96)).astype(np.float32)
    given, out = m.put("x", x), m.empty("y", x.nbytes)
    report = m.run("transpose", (3, 2, 1), (32, 8, 1), [given, out, 96, 64])
    assert report.findings == []
    np.testing.assert_array_equal(m.read(out, np.float32).reshape(96, 64), x.T)
    requests = 96 * 64 // 32
    assert report.counts.shared_requests == 2 * requests
    assert report.counts.bank_conflicts == passes * requests
    assert report.lines[10].bank_conflicts == passes * requests
    # both sides are read and written side by side
    assert report.counts.global_sectors == report.counts.least_global_sectors


def test_the_sectors_of_strided_and_wide_accesses_are_counted() -> None:
    m = machine("""
extern "C" __global__ void stride(const float* x, float* y, int step) {
    y[threadIdx.x] = x[threadIdx.x * step];
}
extern "C" __global__ void wide(const float4* x, float4* y) {
    y[threadIdx.x] = x[threadIdx.x];
}""")
    x, y = m.put("x", np.ones(4096, np.float32)), m.empty("y", 4096)
    for step, sectors in ((1, 4), (2, 8), (8, 32), (32, 32)):
        counts = m.run("stride", (1, 1, 1), (32, 1, 1), [x, y, step]).counts
        assert (counts.global_requests, counts.global_sectors) == (2, sectors + 4)
    wide = m.run("wide", (1, 1, 1), (32, 1, 1), [x, y]).counts
    assert (wide.global_sectors, wide.least_global_sectors) == (32, 32)


def test_atomics_are_among_the_sectors() -> None:
    m = machine("""
extern "C" __global__ void count(const int* x, int* total) {
    atomicAdd(total, x[threadIdx.x]);
    if (atomicCAS(total + 1, 0, 1) == 0) total[2] = 5;
}""")
    x, total = m.put("x", np.ones(32, np.int32)), m.put("total", np.zeros(3, np.int32))
    counts = m.run("count", (1, 1, 1), (32, 1, 1), [x, total]).counts
    assert m.read(total, np.int32).tolist() == [32, 1, 5]
    # a load, two atomics and a store
    assert (counts.global_requests, counts.global_sectors) == (4, 4 + 1 + 1 + 1)


def test_divergence_is_counted_for_each_warp_that_parts() -> None:
    m = machine("""
extern "C" __global__ void odd(int* x) {
    if (threadIdx.x & 1) { x[threadIdx.x] = 1; __nanosleep(1); }
    else { x[threadIdx.x] = 2; __threadfence(); }
}
extern "C" __global__ void halves(int* x) {
    if (threadIdx.x < 32) { x[threadIdx.x] = 1; __nanosleep(1); }
    else { x[threadIdx.x] = 2; __threadfence(); }
}""")
    x = m.empty("x", 256)
    assert m.run("odd", (1, 1, 1), (64, 1, 1), [x]).counts.divergent_branches == 2
    assert m.run("halves", (1, 1, 1), (64, 1, 1), [x]).counts.divergent_branches == 0


def test_functions_tables_of_branches_and_own_arrays() -> None:
    m = machine("""
__constant__ int weight[4] = {3, 1, 4, 1};
__device__ int calls = 5;
__device__ __noinline__ float power(float x, int n) {
    float p = 1; for (int i = 0; i < n; i++) p *= x; return p;
}
extern "C" __global__ void mix(int* x, float* y, int n) {
    int i = threadIdx.x, own[8];
    for (int j = 0; j < 8; j++) own[j] = (i * 7 + j) % 5;
    int sum = 0;
    for (int j = 0; j < n; j++) sum += own[(sum + j) & 7] * weight[j & 3];
    switch (i % 7) {
        case 0: sum += 10; break;   case 1: sum *= 3; break;
        case 2: sum -= 8; break;    case 3: sum ^= 21; break;
        case 4: sum = ~sum; break;  case 5: sum <<= 2; break;
        default: sum = -sum;
    }
    x[i] = sum + atomicAdd(&calls, 0);
    y[i] = power(1.5f, i % 4);
}""")
    x, y = m.empty("x", 160), m.empty("y", 160)
    assert m.run("mix", (1, 1, 1), (40, 1, 1), [x, y, 11]).findings == []
    want = []
    for i in range(40):
        own = [(i * 7 + j) % 5 for j in range(8)]
        total = 0
        for j in range(11):
            total += own[(total + j) & 7] * (3, 1, 4, 1)[j & 3]
        total = (
            total + 10, total * 3, total - 8, total ^ 21, ~total, total << 2, -total
        )[i % 7]  # fmt: skip
        want.append(total + 5)
    assert m.read(x, np.int32).tolist() == want
    assert m.read(y, np.float32).tolist() == [1.5 ** (i % 4) for i in range(40)]


def test_a_lock_that_threads_wait_for_is_freed() -> None:
    m = machine("""
extern "C" __global__ void count(int* lock, volatile int* total) {
    bool done = false;
    while (!done)
        if (atomicCAS(lock, 0, 1) == 0) {
            *total = *total + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
}""")
    lock, total = (
        m.put("lock", np.zeros(1, np.int32)),
        m.put("t", np.zeros(1, np.int32)),
    )
    m.run("count", (2, 1, 1), (64, 1, 1), [lock, total])
    assert m.read(total, np.int32)[0] == 128


def test_what_a_kernel_prints_is_kept() -> None:
    m = machine("""
extern "C" __device__ int printf(const char*, ...);
extern "C" __global__ void hello(float x) {
    int t = threadIdx.x;
    if (t < 2) printf("%d of %s: %5.2f %llu\\n", t, "two", x, 1ull << 40);
}""")
    report = m.run("hello", (1, 1, 1), (8, 1, 1), [2.5])
    assert report.printed == "".join(
        f"{i} of two:  2.50 1099511627776\n" for i in (0, 1)
    )


def test_launches_that_do_not_fit_are_refused_with_the_reason() -> None:
    m = machine(POINTWISE)
    x = m.put("x", np.ones(4, np.float32))
    for grid, block, given, words in (
        ((1, 1, 1), (2048, 1, 1), [x, x, 4], "2,048 threads"),
        ((0, 1, 1), (32, 1, 1), [x, x, 4], "at least 1"),
        ((1, 1, 1), (32, 1, 1), [x, x], "takes 3 arguments; 2"),
        ((1, 1, 1), (32, 1, 1), [x, x, np.int32(4)], "8 bytes"),
        ((1, 1, 1), (32, 1, 1), [x, x, 1 << 70], "does not fit"),
        ((1, 70_000, 1), (32, 1, 1), [x, x, 4], "65,535 x 65,535 at most"),
        ((1, 1, 1), (1, 1, 128), [x, x, 4], "1,024 x 64 at most"),
    ):
        with pytest.raises(BadLaunch, match=words):
            m.run("gelu", grid, block, given)


def test_what_is_not_known_is_named_with_its_line() -> None:
    m = machine("""
extern "C" __global__ void tensor(unsigned* x) {
    unsigned a = x[0];
    asm volatile("fabric.none.b32 %0;" : "+r"(a));
    x[0] = a;
}""")
    x = m.put("x", np.ones(4, np.uint32))
    with pytest.raises(Unsupported, match=r"`fabric.none.*line \d"):
        m.run("tensor", (1, 1, 1), (32, 1, 1), [x])


def test_what_is_too_large_for_the_processor_is_no_mistake() -> None:
    m = machine(POINTWISE)
    x = m.put("x", np.ones(4, np.float32))
    with pytest.raises(Unsupported, match="34,359,738,368 threads are too many to run"):
        m.run("gelu", (1 << 30, 1, 1), (32, 1, 1), [x, x, 4])


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "{",
        ".visible .entry f(",
        '.entry f() { add.s32 %r1, "x; }',
        "\ud800" * 5,
        "]" * 999,
    ]
    + [
        ".visible .entry f() { add }",
        ".visible .entry f() { bra $nowhere; }",
        "x" * 9_000_000,
    ],
)
def test_text_that_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(PtxError):
        Machine(text).run("f", (1, 1, 1), (1, 1, 1), [])
