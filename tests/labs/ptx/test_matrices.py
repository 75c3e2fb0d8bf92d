"""Tensor cores' instructions, on the layouts that the PTX ISA tells."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.engines.interpreter.ptx.text.values import to_bf16

RANDOM = np.random.default_rng(3)

#: A is 16 x k by rows, B k x 8 by columns, as 32-bit words; C and D 16 x 8
MULTIPLY = """
extern "C" __global__ void multiply(const unsigned* a, const unsigned* b, TOTAL* c) {
    int t = threadIdx.x, g = t / 4, r = t % 4;
    unsigned x[HALVES * 2], y[HALVES];
    for (int h = 0; h < HALVES; h++) {
        x[2 * h] = a[g * WORDS + r + 4 * h];
        x[2 * h + 1] = a[(g + 8) * WORDS + r + 4 * h];
        y[h] = b[g * WORDS + r + 4 * h];
    }
    TOTAL d[4] = {c[g * 8 + 2 * r], c[g * 8 + 2 * r + 1],
                  c[(g + 8) * 8 + 2 * r], c[(g + 8) * 8 + 2 * r + 1]};
    asm volatile("mma.sync.aligned.SHAPE.row.col.TYPES "
        "{%0, %1, %2, %3}, {A}, {B}, {%0, %1, %2, %3};"
        : "+K"(d[0]), "+K"(d[1]), "+K"(d[2]), "+K"(d[3]) : INPUTS);
    c[g * 8 + 2 * r] = d[0]; c[g * 8 + 2 * r + 1] = d[1];
    c[(g + 8) * 8 + 2 * r] = d[2]; c[(g + 8) * 8 + 2 * r + 1] = d[3];
}"""


def multiply(type_: str, depth: int, total: str, bits: int) -> str:
    words = depth * bits // 32
    halves = words // 4
    kind = {"f32": "float", "s32": "int"}[total]
    named = [f"%{4 + n}" for n in range(3 * halves)]
    inputs = [f'"r"(x[{n}])' for n in range(2 * halves)]
    inputs += [f'"r"(y[{n}])' for n in range(halves)]
    return (
        MULTIPLY.replace("HALVES", str(halves))
        .replace("WORDS", str(words))
        .replace("SHAPE", f"m16n8k{depth}")
        .replace("TYPES", f"{total}.{type_}.{type_}.{total}")
        .replace("TOTAL", kind)
        .replace("+K", "+f" if total == "f32" else "+r")
        .replace("{A}", "{" + ", ".join(named[: 2 * halves]) + "}")
        .replace("{B}", "{" + ", ".join(named[2 * halves :]) + "}")
        .replace("INPUTS", ", ".join(inputs))
    )


@pytest.mark.parametrize(
    ("type_", "depth", "bits"),
    [
        ("f16", 16, 16),
        ("bf16", 16, 16),
        ("f16", 8, 16),
        ("tf32", 8, 32),
        ("tf32", 4, 32),
        ("s8", 32, 8),
    ],
)
def test_a_warp_multiplies_matrices(type_: str, depth: int, bits: int) -> None:
    a, b = (RANDOM.integers(-9, 9, (rows, depth)) for rows in (16, 8))
    pack = {
        "f16": lambda x: x.astype(np.float16),
        "bf16": lambda x: to_bf16(x.astype(np.float32)),
        "tf32": lambda x: x.astype(np.float32),
        "s8": lambda x: x.astype(np.int8),
    }[type_]
    total = "s32" if type_ == "s8" else "f32"
    m = machine(multiply(type_, depth, total, bits))
    before = RANDOM.integers(-9, 9, (16, 8))
    dtype = np.int32 if total == "s32" else np.float32
    x, y, c = (
        m.put("a", pack(a)), m.put("b", pack(b)), m.put("c", before.astype(dtype))
    )  # fmt: skip
    report = m.run("multiply", (1, 1, 1), (32, 1, 1), [x, y, c])
    assert report.findings == []
    assert np.array_equal(m.read(c, dtype).reshape(16, 8), a @ b.T + before)


def test_a_warp_multiplies_doubles() -> None:
    m = machine("""
extern "C" __global__ void multiply(const double* a, const double* b, double* c) {
    int t = threadIdx.x;
    double d[2] = {c[t / 4 * 8 + t % 4 * 2], c[t / 4 * 8 + t % 4 * 2 + 1]};
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
        "{%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1]) : "d"(a[t]), "d"(b[t % 4 * 8 + t / 4]));
    c[t / 4 * 8 + t % 4 * 2] = d[0];
    c[t / 4 * 8 + t % 4 * 2 + 1] = d[1];
}""")
    a, b, c = (
        RANDOM.integers(-999, 999, shape).astype(np.float64)
        for shape in ((8, 4), (4, 8), (8, 8))
    )
    places = [m.put(name, of) for name, of in (("a", a), ("b", b), ("c", c))]
    assert m.run("multiply", (1, 1, 1), (32, 1, 1), places).findings == []
    np.testing.assert_array_equal(
        m.read(places[2], np.float64).reshape(8, 8), a @ b + c
    )


def test_a_warp_that_is_not_whole_is_told() -> None:
    m = machine(multiply("f16", 16, "f32", 16))
    held = [m.put(name, np.zeros(512, np.float32)) for name in "abc"]
    report = m.run("multiply", (1, 1, 1), (16, 1, 1), held)
    assert [finding.kind for finding in report.findings] == ["inactive lane"]


@pytest.mark.parametrize("turned", ["", ".trans"])
def test_matrices_are_loaded_by_rows_or_turned(turned: str) -> None:
    m = machine(
        """
extern "C" __global__ void load(const unsigned short* x, unsigned* y) {
    __shared__ __align__(16) unsigned short held[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) held[i] = x[i];
    __syncwarp();
    unsigned at = __cvta_generic_to_shared(held + 8 * t), r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4TURNED.shared.b16 "
        "{%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
    for (int i = 0; i < 4; i++) y[32 * i + t] = r[i];
}""".replace("TURNED", turned)
    )
    values = np.arange(256, dtype=np.uint16).reshape(4, 8, 8)
    x, y = m.put("x", values), m.empty("y", 512)
    report = m.run("load", (1, 1, 1), (32, 1, 1), [x, y])
    assert report.findings == []
    want = values.transpose(0, 2, 1) if turned else values
    assert np.array_equal(m.read(y, np.uint16).reshape(4, 8, 8), want)
