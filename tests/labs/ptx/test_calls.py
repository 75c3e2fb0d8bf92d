"""Functions that call themselves, and calls through pointers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.results.findings import Report

THREADS = 16


def ran(source: str) -> tuple[list[int], Report]:
    m = machine(source)
    out = m.empty("out", 4 * THREADS)
    report = m.run("kernel", (1, 1, 1), (THREADS, 1, 1), [out])
    return m.read(out, np.int32).tolist(), report


def test_a_function_calls_itself_twice_and_keeps_what_it_needs_between() -> None:
    numbers, report = ran("""
__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void kernel(int* out) {
    out[threadIdx.x] = fibonacci(threadIdx.x);
}""")
    assert report.findings == []
    assert numbers == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]


def test_functions_that_call_one_another_have_a_frame_each() -> None:
    numbers, report = ran("""
__device__ __noinline__ int is_odd(int n);
__device__ __noinline__ int is_even(int n) { return n ? is_odd(n - 1) : 1; }
__device__ __noinline__ int is_odd(int n) { return n ? is_even(n - 1) : 0; }
extern "C" __global__ void kernel(int* out) {
    out[threadIdx.x] = 2 * is_odd(threadIdx.x) + is_even(threadIdx.x);
}""")
    assert report.findings == []
    assert numbers == [1, 2] * (THREADS // 2)


def test_each_call_has_arrays_of_its_own_and_may_hand_on_their_address() -> None:
    numbers, report = ran("""
struct Pair { int first; char second; };
__device__ __noinline__ int sum(Pair* pair, int n) {
    int held[4];
    for (int i = 0; i < 4; i++) held[(i + n) & 3] = i * n + pair->first;
    if (n == 0) return held[1];
    Pair next = {pair->first + 1, 'x'};
    int rest = sum(&next, n - 1);
    return rest + held[n & 3];
}
extern "C" __global__ void kernel(int* out) {
    Pair pair = {1, 'x'};
    out[threadIdx.x] = sum(&pair, threadIdx.x % 5);
}""")
    assert report.findings == []
    assert numbers == [(n + 1) * (n + 2) // 2 for n in (*range(5),) * 4][:THREADS]


def test_a_function_prints_from_within_itself() -> None:
    _, report = ran("""
__device__ __noinline__ int down(int n) {
    printf("%d ", n);
    return n ? n + down(n - 1) : 0;
}
extern "C" __global__ void kernel(int* out) {
    out[threadIdx.x] = threadIdx.x ? 0 : down(3);
}""")
    assert report.printed == "3 2 1 0 "


def test_a_function_that_always_calls_itself_is_told_with_its_line() -> None:
    _, report = ran("""
__device__ __noinline__ int down(int n) {
    return n + down(n - 1) % 7;
}
extern "C" __global__ void kernel(int* out) {
    out[threadIdx.x] = down(threadIdx.x);
}""")
    (finding,) = report.findings
    assert (finding.kind, finding.line, report.stopped) == ("too long", 3, True)
    assert "calls `down` on line 3 within itself" in finding.message


OPERATIONS = """
typedef int (*Operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int power(int a, int b) {
    return b ? a * power(a, b - 1) : 1;
}
__device__ Operation operations[3] = {plus, times, LAST};
extern "C" __global__ void kernel(int* out) {
    int i = threadIdx.x;
    out[i] = operations[i % 3](i, 3);
}"""


def test_pointers_to_functions_lie_in_a_table() -> None:
    numbers, report = ran(OPERATIONS.replace("LAST", "power"))
    assert report.findings == []
    of = (lambda i: i + 3, lambda i: 3 * i, lambda i: i**3)
    assert numbers == [of[i % 3](i) for i in range(THREADS)]


def test_a_pointer_to_no_function_is_told_with_its_line() -> None:
    _, report = ran(OPERATIONS.replace("LAST", "0"))
    (finding,) = report.findings
    assert (finding.kind, finding.line, report.stopped) == ("out of bounds", 11, True)
    assert "thread (2, 0, 0)" in finding.message
    assert "by the address 0x0" in finding.message


def test_a_method_is_chosen_by_the_object() -> None:
    numbers, report = ran("""
struct Shape { __device__ virtual int area(int s) const = 0; };
struct Square : Shape {
    __device__ int area(int s) const override { return s * s; }
};
struct Line : Shape {
    __device__ int area(int s) const override { return 0; }
};
__device__ __noinline__ int area_of(const Shape* s, int n) { return s->area(n); }
extern "C" __global__ void kernel(int* out) {
    int i = threadIdx.x;
    Square square;
    Line line;
    out[i] = area_of(i % 2 ? (Shape*)&square : (Shape*)&line, i);
}""")
    assert report.findings == []
    assert numbers == [i * i if i % 2 else 0 for i in range(THREADS)]


@pytest.mark.parametrize("count", [2, 4])
def test_an_atomic_addition_of_a_vector_adds_each_part(count: int) -> None:
    numbers = ", ".join(str(number + 1) for number in range(count))
    m = machine(f"""
extern "C" __global__ void kernel(float{count}* sum, float{count}* before) {{
    before[threadIdx.x] = atomicAdd(sum, make_float{count}({numbers}));
}}""")
    total = m.put("sum", np.zeros(count, np.float32))
    before = m.empty("before", 4 * count * THREADS)
    report = m.run("kernel", (1, 1, 1), (THREADS, 1, 1), [total, before])
    parts = np.arange(1, count + 1, dtype=np.float32)
    assert report.findings == []
    assert np.array_equal(m.read(total, np.float32), THREADS * parts)
    rows = m.read(before, np.float32).reshape(THREADS, count)
    assert np.array_equal(rows, np.arange(THREADS)[:, None] * parts)
