"""The lines from which a value, an address or a decision came."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.engines.interpreter.ptx.lines.origins import Origins
from warpbook_labs.engines.interpreter.ptx.machine.machine import Machine
from warpbook_labs.engines.interpreter.ptx.memory.spaces import Buffer

BRANCH = """
__device__ float twice(float v) {
    return v + v;
}
extern "C" __global__ void mix(const float* x, const float* y, float* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    float a = x[i];
    float b = y[i];
    if (i < 4)
        out[i] = twice(a);
    else
        out[i] = sqrtf(b);
}"""


def named(m: Machine, name: str) -> Buffer:
    return next(buffer for buffer in m.buffers if buffer.name == name)


def followed(source: str, n: int, count: int = 8) -> tuple[Machine, Origins]:
    m = machine(source)
    m.follow(m.kernels)
    values = np.arange(1, 1 + count, dtype=np.float32)
    out = m.empty("out", 4 * count)
    buffers = [m.put("x", values), m.put("y", values), out]
    m.run(m.kernels[0], (1, 1, 1), (32, 1, 1), [*buffers, n])
    assert m.origins is not None
    return m, m.origins


def test_a_value_names_the_lines_that_computed_it_and_no_others() -> None:
    m, origins = followed(BRANCH, 8)
    out = named(m, "out")
    doubled, rooted = origins.of_value(out, 0, 11), origins.of_value(out, 28, 13)
    assert {3, 8} <= set(doubled) and not {12, 13} & set(doubled)
    assert 9 in rooted and not {3, 8} & set(rooted)
    # the branch and what it compares decide, too
    assert {10, 7} & set(doubled) and {10, 7} & set(rooted)


def test_a_value_that_came_through_shared_memory_and_a_shuffle_names_both() -> None:
    m, origins = followed(
        """
extern "C" __global__ void pass(const float* x, const float* y, float* out, int n) {
    __shared__ float held[32];
    int t = threadIdx.x;
    held[t] = t < n ? x[t] : 0;
    __syncthreads();
    float v = held[31 - t];
    v = __shfl_xor_sync(~0u, v, 1);
    if (t < n) out[t] = v;
}""",
        8,
    )
    assert {5, 7, 8} <= set(origins.of_value(named(m, "out"), 0, 9))


def test_what_nobody_wrote_names_who_would_and_what_decides() -> None:
    m, origins = followed(BRANCH, 0)
    lines, writer = origins.of_nobody(named(m, "out"))
    assert writer in (11, 13) and 7 in lines
    assert origins.launches_to(named(m, "out")) == (0,)
    assert origins.launches_to(named(m, "x")) == ()


def test_the_address_of_what_is_told_names_its_lines() -> None:
    m, origins = followed(
        """
extern "C" __global__ void far(const float* x, const float* y, float* out, int n) {
    int t = threadIdx.x;
    int at = t * n;
    float v = y[t % 8];
    out[at] = v;
}""",
        100,
    )
    assert 4 in origins.of_told() and 5 not in origins.of_told()


TWO_STORES = """
extern "C" __global__ void two(const float* x, const float* y, float* out, int n) {
    int i = threadIdx.x;
    int rest = 8 + i + n;
    if (i < 7) out[i] = x[i] + 1;
    if (rest < 8) out[rest] = y[rest];
}"""


def test_a_store_that_no_thread_came_to_is_named_with_what_decides_its_place() -> None:
    m, origins = followed(TWO_STORES, 1)
    assert origins.of_unused(named(m, "out")) == (6, 4)
    m, origins = followed(TWO_STORES, -1)
    assert origins.of_unused(named(m, "out")) == ()


def test_lines_are_named_that_other_elements_have() -> None:
    m, origins = followed(
        """
extern "C" __global__ void most(const float* x, const float* y, float* out, int n) {
    int i = threadIdx.x;
    float sum = 0;
    if (i < 7)
        sum = sqrtf(x[i]);
    if (i < n) out[i] = sum;
}""",
        8,
    )
    out = named(m, "out")
    assert 6 not in origins.of_value(out, 28, 7)
    assert 6 in origins.beyond(out, np.arange(0, 32, 4), 28, 7)


def test_what_a_function_does_comes_before_the_lines_of_its_calls() -> None:
    m, origins = followed(
        """
__device__ float one(float v) {
    return sqrtf(v);
}
__device__ float two(float v) {
    return one(v);
}
extern "C" __global__ void calls(const float* x, const float* y, float* out, int n) {
    float v = x[threadIdx.x % 8] * 2;
    if (threadIdx.x < n) out[threadIdx.x] = two(v);
}""",
        8,
    )
    lines = origins.of_value(named(m, "out"), 0, 10)
    assert lines[0] == 3 and lines.index(9) < lines.index(6)


@pytest.mark.parametrize("n", [3, 8])
def test_following_changes_no_result(n: int) -> None:
    m, _ = followed(BRANCH, n)
    plain = machine(BRANCH)
    values = np.arange(1, 9, dtype=np.float32)
    out = plain.empty("out", 32)
    buffers = [plain.put("x", values), plain.put("y", values), out]
    plain.run("mix", (1, 1, 1), (32, 1, 1), [*buffers, n])
    same = plain.read(out, np.uint8) == m.read(named(m, "out"), np.uint8)
    assert same.all()
