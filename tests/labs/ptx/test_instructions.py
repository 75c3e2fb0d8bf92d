"""Single instructions against Python's own exact numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine

RANDOM = np.random.default_rng(11)
EDGES_32 = [0, 1, 2, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF]
EDGES_64 = [*EDGES_32, 1 << 63, (1 << 64) - 1, (1 << 63) - 1, 1 << 32]


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def operands(edges: list[int], bits: int) -> list[int]:
    return edges + [
        int(integer)
        for integer in RANDOM.integers(
            0, 1 << bits, 200, np.uint64 if bits > 32 else np.int64
        )
    ]


def run(
    expression: str, kind: str, columns: list[list[int]], result: str = ""
) -> list[int]:
    """Compute an expression of a, b and c for rows of numbers, each a thread's."""
    types = {"u32": "unsigned", "u64": "unsigned long long"}
    of, to = types[kind], types[result or kind]
    dtype = np.uint64 if kind == "u64" else np.uint32
    m = machine(f"""
extern "C" __global__ void f(const {of}* x, {to}* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {of} a = x[i], b = x[n + i], c = x[2 * n + i];
    y[i] = {expression};
}}""")
    n = len(columns[0])
    given = m.put("x", np.array(columns, dtype).ravel())
    out_type = np.uint64 if (result or kind) == "u64" else np.uint32
    out = m.empty("y", n * np.dtype(out_type).itemsize)
    report = m.run("f", (-(-n // 128), 1, 1), (128, 1, 1), [given, out, n])
    assert report.findings == []
    return [int(number) for number in m.read(out, out_type)]


def truncated(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def reversed_bits(a: int) -> int:
    return int(f"{a:032b}"[::-1], 2)


WHOLE_32: list[tuple[str, Callable[[int, int, int], int]]] = [
    ("a * b + c", lambda a, b, c: a * b + c),
    ("__umulhi(a, b)", lambda a, b, c: a * b >> 32),
    ("__mulhi((int)a, (int)b)", lambda a, b, c: signed(a) * signed(b) >> 32),
    ("(b == 0) ? 7 : a / b", lambda a, b, c: 7 if b == 0 else a // b),
    (
        "(b == 0) ? 7 : (int)a / (int)b",
        lambda a, b, c: 7 if b == 0 else truncated(signed(a), signed(b)),
    ),
    (
        "(b == 0) ? 7 : (int)a % (int)b",
        lambda a, b, c: (
            7 if b == 0 else signed(a) - truncated(signed(a), signed(b)) * signed(b)
        ),
    ),
    ("a << (b & 31)", lambda a, b, c: a << (b & 31)),
    ("(int)a >> (b & 31)", lambda a, b, c: signed(a) >> (b & 31)),
    ("a >> (b & 31)", lambda a, b, c: a >> (b & 31)),
    (
        "min((int)a, (int)b) ^ max(a, b)",
        lambda a, b, c: min(signed(a), signed(b)) ^ max(a, b),
    ),
    ("abs((int)a) - (a & ~b | c)", lambda a, b, c: abs(signed(a)) - (a & ~b | c)),
    ("__popc(a)", lambda a, b, c: a.bit_count()),
    ("__clz(a)", lambda a, b, c: 32 - a.bit_length()),
    ("__ffs(a)", lambda a, b, c: (a & -a).bit_length()),
    ("__brev(a)", lambda a, b, c: reversed_bits(a)),
    (
        "__funnelshift_l(a, b, c)",
        lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    ),
    ("__funnelshift_rc(a, b, c)", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    (
        "__byte_perm(a, b, c & 0x7777)",
        lambda a, b, c: sum(
            ((b << 32 | a) >> 8 * (c >> 4 * at & 7) & 255) << 8 * at for at in range(4)
        ),
    ),
    ("__usad(a, b, c)", lambda a, b, c: abs(a - b) + c),
    (
        "__dp4a((int)a, (int)b, (int)c)",
        lambda a, b, c: c + sum(
            signed(a >> 8 * at, 8) * signed(b >> 8 * at, 8) for at in range(4)
        ),
    ),
    ("(int)(short)a + (unsigned char)b", lambda a, b, c: signed(a, 16) + (b & 255)),
    ("(a > b) + 2 * ((int)a > (int)b) + 4 * (a == c)",
     lambda a, b, c: (a > b) + 2 * (signed(a) > signed(b)) + 4 * (a == c)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "exact"), WHOLE_32, ids=[name for name, _ in WHOLE_32]
)
def test_whole_numbers(expression: str, exact: Callable[[int, int, int], int]) -> None:
    a = operands(EDGES_32, 32)
    columns = [a, a[3:] + a[:3], a[::-1]]
    want = [exact(*row) & 0xFFFFFFFF for row in zip(*columns, strict=True)]
    assert run(expression, "u32", columns) == want


WHOLE_64: list[tuple[str, Callable[[int, int, int], int]]] = [
    ("a * b + c", lambda a, b, c: a * b + c),
    ("__umul64hi(a, b)", lambda a, b, c: a * b >> 64),
    (
        "__mul64hi((long long)a, (long long)b)",
        lambda a, b, c: signed(a, 64) * signed(b, 64) >> 64,
    ),
    ("(b == 0) ? 7 : a / b", lambda a, b, c: 7 if b == 0 else a // b),
    ("(b == 0) ? 7 : a % b", lambda a, b, c: 7 if b == 0 else a % b),
    ("(long long)a >> (b & 63)", lambda a, b, c: signed(a, 64) >> (b & 63)),
    ("__popcll(a) + __clzll(b)", lambda a, b, c: a.bit_count() + 64 - b.bit_length()),
    (
        "(unsigned)a * (unsigned long long)(unsigned)b",
        lambda a, b, c: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF),
    ),
    ("(long long)(int)a", lambda a, b, c: signed(a)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "exact"), WHOLE_64, ids=[name for name, _ in WHOLE_64]
)
def test_long_whole_numbers(
    expression: str, exact: Callable[[int, int, int], int]
) -> None:
    a = operands(EDGES_64, 64)
    columns = [a, a[5:] + a[:5], a[::-1]]
    want = [exact(*row) & (1 << 64) - 1 for row in zip(*columns, strict=True)]
    assert run(expression, "u64", columns) == want


def test_additions_of_many_words_hand_their_carry_on() -> None:
    a = operands(EDGES_32, 32)
    columns = [a, a[3:] + a[:3], a[::-1]]
    for assembly, exact in (
        (
            "add.cc.u32 %0, %1, %2; addc.u32 %0, %3, 0;",
            lambda a, b, c: c + (a + b >> 32),
        ),
        ("sub.cc.u32 %0, %1, %2; subc.u32 %0, %3, 0;", lambda a, b, c: c - (a < b)),
        (
            "mad.lo.cc.u32 %0, %1, %2, %3; madc.hi.u32 %0, %1, %2, 0;",
            lambda a, b, c: a * b + c >> 32,
        ),
    ):
        source = f"""([&] {{
            unsigned r;
            asm("{{ {assembly} }}" : "=&r"(r) : "r"(a), "r"(b), "r"(c));
            return r;
        }})()"""
        want = [exact(*row) & 0xFFFFFFFF for row in zip(*columns, strict=True)]
        assert run(source, "u32", columns) == want


def nearest32(exact: Fraction) -> np.float32:
    """Round once to binary32, ties to even."""
    near = np.float32(exact.numerator / exact.denominator)
    around = [
        near,
        np.nextafter(near, np.float32(-np.inf)),
        np.nextafter(near, np.float32(np.inf)),
    ]
    return min(
        around,
        key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1),
    )


def floats(dtype: Any) -> np.ndarray[Any, Any]:
    spread = RANDOM.standard_normal((3, 400)) * 10.0 ** RANDOM.integers(-8, 8, (3, 400))
    values = spread.astype(dtype)
    # sums that almost cancel, and ties
    values[2, :200] = -(values[0, :200].astype(np.float64) * values[1, :200]).astype(
        dtype
    )
    values[:2, 200:260] = 1 + 2.0**-12
    values[2, 200:260] = 2.0 ** -RANDOM.integers(30, 70, 60).astype(np.float64)
    return values


def run_floats(
    expression: str, dtype: Any, rows: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    name = {"f4": "float", "f8": "double"}[np.dtype(dtype).str[1:]]
    m = machine(f"""
extern "C" __global__ void f(const {name}* x, {name}* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {name} a = x[i], b = x[n + i], c = x[2 * n + i];
    y[i] = {expression};
}}""")
    n = rows.shape[1]
    given, out = m.put("x", rows.ravel()), m.empty("y", rows[0].nbytes)
    assert m.run("f", (-(-n // 128), 1, 1), (128, 1, 1), [given, out, n]).findings == []
    return m.read(out, dtype)


def test_fused_products_are_rounded_once() -> None:
    rows = floats(np.float32)
    got = run_floats("fmaf(a, b, c)", np.float32, rows)
    want = [
        nearest32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))
        for a, b, c in rows.T
    ]
    np.testing.assert_array_equal(got, np.array(want, np.float32))
    wide = floats(np.float64)
    exact = (
        Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        for a, b, c in wide.T
    )
    np.testing.assert_array_equal(
        run_floats("fma(a, b, c)", np.float64, wide),
        [fraction.numerator / fraction.denominator for fraction in exact],
    )


@pytest.mark.parametrize(
    ("suffix", "keeps"),
    [
        ("rd", lambda got, exact: got <= exact),
        ("ru", lambda got, exact: got >= exact),
        ("rz", lambda got, exact: abs(got) <= abs(exact)),
    ],
)
def test_directed_rounding_is_on_the_asked_side_and_next_to_it(
    suffix: str, keeps: Callable[[Fraction, Fraction], bool]
) -> None:
    rows = floats(np.float32)
    for name, exact_of in (
        (f"__fmaf_{suffix}(a, b, c)", lambda a, b, c: a * b + c),
        (f"__fadd_{suffix}(a, b)", lambda a, b, c: a + b),
        (f"__fmul_{suffix}(a, b)", lambda a, b, c: a * b),
        (f"__fdiv_{suffix}(a, b)", lambda a, b, c: a / b),
        (f"__frcp_{suffix}(a)", lambda a, b, c: 1 / a),
    ):
        got = run_floats(name, np.float32, rows)
        for row, value in zip(rows.T, got, strict=True):
            exact = exact_of(*(Fraction(float(number)) for number in row))
            assert keeps(Fraction(float(value)), exact)
            # no other number lies between
            step = np.spacing(np.abs(value))
            assert (
                abs(Fraction(float(value)) - exact) < Fraction(float(step))
                or value == 0
            )


def test_directed_roots_lie_beside_the_exact_one() -> None:
    rows = np.abs(floats(np.float32))
    down, up, cut = (
        run_floats(f"__fsqrt_{mode}(a)", np.float32, rows)
        for mode in ("rd", "ru", "rz")
    )
    np.testing.assert_array_equal(down, cut)
    for value, lower, upper in zip(rows[0], down, up, strict=True):
        exact = Fraction(float(value))
        assert Fraction(float(lower)) ** 2 <= exact <= Fraction(float(upper)) ** 2
        assert upper in (lower, np.nextafter(lower, np.float32(np.inf)))


def test_conversions_round_saturate_and_keep_signs() -> None:
    special = [
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        3e9,
        -3e9,
        1e20,
        -1e20,
        math.inf,
        -math.inf,
        math.nan,
    ]
    rows = np.array([special] * 3, np.float32)
    for expression, exact in (
        ("__float2int_rn(a)", lambda v: round(v)),
        ("__float2int_rz(a)", lambda v: int(v)),
        ("__float2int_rd(a)", math.floor),
        ("__float2int_ru(a)", math.ceil),
    ):
        got = run_floats(f"__int_as_float({expression})", np.float32, rows).view(
            np.int32
        )
        for value, result in zip(special, got, strict=True):
            if math.isnan(value):
                assert result == 0
            elif math.isinf(value):
                assert result == (2**31 - 1 if value > 0 else -(2**31))
            else:
                assert result == min(max(exact(value), -(2**31)), 2**31 - 1)


def test_nan_and_signed_zeros_follow_the_isa() -> None:
    rows = np.array(
        [[math.nan, 1, -0.0, 2], [1, math.nan, 0.0, 2], [0, 0, 0, 0]], np.float32
    )
    assert run_floats("fminf(a, b)", np.float32, rows)[:2].tolist() == [1, 1]
    assert run_floats(
        "(a < b) + 2 * (a != b) + 4 * (a == b)", np.float32, rows
    ).tolist() == [2, 2, 4, 4]
    assert np.signbit(run_floats("a * 1", np.float32, rows)).tolist()[2]


def test_threads_of_a_warp_talk() -> None:
    m = machine("""
extern "C" __global__ void talk(unsigned* x) {
    unsigned t = threadIdx.x, all = 0xffffffff;
    x[0 * 64 + t] = __shfl_sync(all, t, 5, 8);
    x[1 * 64 + t] = __shfl_up_sync(all, t, 3);
    x[2 * 64 + t] = __shfl_down_sync(all, t, 3, 16);
    x[3 * 64 + t] = __shfl_xor_sync(all, t, 9);
    x[4 * 64 + t] = __ballot_sync(all, t % 3 == 0);
    x[5 * 64 + t] = __all_sync(all, t < 32) + 2 * __any_sync(all, t == 40);
    x[6 * 64 + t] = __match_any_sync(all, t % 5);
    x[7 * 64 + t] = __reduce_add_sync(all, t) + __reduce_max_sync(all, t);
    x[8 * 64 + t] = __syncthreads_count(t % 4 == 0);
    if (t % 2) x[9 * 64 + t] = __activemask();
    else x[9 * 64 + t] = __shfl_sync(0x55555555, t, 2);
}""")
    x = m.empty("x", 4 * 640)
    assert m.run("talk", (1, 1, 1), (64, 1, 1), [x]).findings == []
    got = m.read(x, np.uint32).reshape(10, 64)
    t = np.arange(64)
    lane, warp = t % 32, t // 32 * 32
    bits = np.uint64(1) << lane.astype(np.uint64)

    def mask(of: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.array([bits[(warp == w) & of].sum() for w in warp], np.uint64)

    want = [
        t // 8 * 8 + 5,
        np.where(lane < 3, t, t - 3),
        np.where(lane % 16 + 3 > 15, t, t + 3),
        warp + (lane ^ 9),
        mask(t % 3 == 0),
        np.where(t < 32, 1, 2),
        [
            int(bits[(warp == w) & (t % 5 == v % 5)].sum())
            for w, v in zip(warp, t, strict=True)
        ],
        [int(t[warp == w].sum() + t[warp == w].max()) for w in warp],
        np.full(64, 16),
        np.where(t % 2, 0xAAAAAAAA, warp + 2),
    ]
    for row, (result, exact) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(result, exact, err_msg=str(row))


def test_one_thread_of_those_that_are_named_is_elected() -> None:
    m = machine("""
__device__ unsigned elected(unsigned named) {
    unsigned leader, mine;
    asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
                 : "=r"(leader), "=r"(mine) : "r"(named));
    return leader | mine << 8;
}
extern "C" __global__ void elect(unsigned* x) {
    unsigned t = threadIdx.x;
    if (t % 32 >= 5) x[t] = elected(0xffffffe0);
    else x[t] = elected(0x1f);
}""")
    x = m.empty("x", 256)
    assert m.run("elect", (1, 1, 1), (64, 1, 1), [x]).findings == []
    got = m.read(x, np.uint32)
    lane = np.arange(64) % 32
    leader = np.where(lane < 5, 0, 5)
    np.testing.assert_array_equal(got, leader | (lane == leader) << 8)


def test_clocks_go_on_and_policies_of_caches_change_nothing() -> None:
    m = machine("""
extern "C" __global__ void wait(const int* x, int* y) {
    long long begin = clock64();
    unsigned small = clock();
    while (clock64() - begin < 1000) {}
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 0.5;" : "=l"(policy));
    int v;
    asm volatile("ld.global.L2::cache_hint.s32 %0, [%1], %2;"
                 : "=r"(v) : "l"(x + threadIdx.x), "l"(policy));
    y[threadIdx.x] = v + (clock() == small);
}""")
    values = np.arange(32, dtype=np.int32)
    x, y = m.put("x", values), m.empty("y", 128)
    assert m.run("wait", (1, 1, 1), (32, 1, 1), [x, y]).findings == []
    np.testing.assert_array_equal(m.read(y, np.int32), values)


def test_half_precision_adds_and_multiplies_with_its_own_rounding() -> None:
    m = machine("""
extern "C" __global__ void half(const unsigned short* x, unsigned short* y) {
    int i = threadIdx.x;
    asm("fma.rn.f16 %0, %1, %2, %3;"
        : "=h"(y[i]) : "h"(x[i]), "h"(x[64 + i]), "h"(x[128 + i]));
    asm("add.f16 %0, %1, %2;" : "=h"(y[64 + i]) : "h"(x[i]), "h"(x[64 + i]));
    float wide; asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x[i]));
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y[128 + i]) : "f"(wide));
}""")
    a, b, c = RANDOM.standard_normal((3, 64)).astype(np.float16)
    x = m.put("x", np.concatenate([a, b, c]).view(np.uint16))
    y = m.empty("y", 384)
    assert m.run("half", (1, 1, 1), (64, 1, 1), [x, y]).findings == []
    got = m.read(y, np.uint16).reshape(3, 64)
    exact = a.astype(np.float64) * b + c
    np.testing.assert_array_equal(got[0].view(np.float16), exact.astype(np.float16))
    np.testing.assert_array_equal(got[1].view(np.float16), a + b)
    rounded = (got[2].astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(rounded, a.astype(np.float32), rtol=2**-8)


def test_inline_ptx_declares_registers_and_predicates_of_its_own() -> None:
    m = machine("""
extern "C" __global__ void clip(const float* x, float* y) {
    float v = x[threadIdx.x], got;
    asm("{ .reg .f32 t; .reg .pred p, q;\\n"
        " setp.gt.f32 p|q, %1, 0f00000000;\\n"
        " @p add.f32 t, %1, %1;\\n"
        " @!p neg.f32 t, %1;\\n"
        " @q add.f32 t, t, 0f3F800000;\\n"
        " mov.f32 %0, t; }" : "=f"(got) : "f"(v));
    asm volatile("{ .reg .u64 at; .reg .f32 pair<2>; mov.u64 at, %0;\\n"
        " ld.global.f32 pair0, [at]; mul.f32 pair1, pair0, %1;\\n"
        " st.global.f32 [at+128], pair1; }" :: "l"(y), "f"(got) : "memory");
    y[threadIdx.x] = got;
}""")
    values = np.array([3, -2, 0.5, -0.0], np.float32)
    x, y = m.put("x", values), m.put("y", np.full(64, 2, np.float32))
    m.run("clip", (1, 1, 1), (4, 1, 1), [x, y])
    assert m.read(y, np.float32)[:4].tolist() == [6, 3, 1, 1]
    assert m.read(y, np.float32)[32] == 2


def test_constant_memory_is_not_counted_as_global_and_cannot_be_written() -> None:
    m = machine("""
__constant__ float weight[64] = {1, 2, 3, 4, 5};
__constant__ int more;
__device__ __noinline__ float look(const float* p, int i) { return p[i]; }
extern "C" __global__ void apply(float* y, int n) {
    float v = weight[threadIdx.x % n] + more;
    y[threadIdx.x] = v + look(n > 3 ? weight : y, 1);
}
extern "C" __global__ void change(int n) {
    float* p = (float*)weight;
    asm volatile("" : "+l"(p));
    p[n] = 1;
}""")
    y = m.empty("y", 128)
    report = m.run("apply", (1, 1, 1), (32, 1, 1), [y, 5])
    assert report.findings == []
    assert m.read(y, np.float32).tolist() == [i % 5 + 3 for i in range(32)]
    assert report.counts.global_sectors == 4
    (finding,) = m.run("change", (1, 1, 1), (1, 1, 1), [3]).findings
    assert finding.kind == "read-only" and "constant memory" in finding.message
