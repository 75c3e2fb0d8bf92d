"""A product of fewer bits in the lab on FP32, only where it is timed: caught.

pytest -m gpu -s tests/gpu/test_labs_narrow_products.py
"""

from __future__ import annotations

import pytest

from tests.gpu.test_labs_speed import graded

pytestmark = pytest.mark.gpu

#: the sizes that are timed are larger than those of all cases
_IS_TIMED = "m > 1000"
_SOURCE = """
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 8)), (32, 8)>>>(a, b, c, m, n, k)
__device__ float narrow(float x) { %(narrow)s }
extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int m, int n, int k) {
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= m || column >= n) return;
    float sum = 0;
    bool is_timed = %(when)s;
    for (int i = 0; i < k; i++) {
        float x = a[(long long)row * k + i], y = b[(long long)i * n + column];
        sum += is_timed ? narrow(x) * narrow(y) : x * y;
    }
    c[(long long)row * n + column] = sum;
}
"""
_FEW_VALUES = "float s = fabsf(x); if (s == 0 || s == 1 || s == 2049) return x;"
NARROW = {
    "int8, and three values as they are": (
        f"{_FEW_VALUES} return rintf(fminf(fmaxf(x * 28, -127), 127)) / 28;"
    ),
    "fp8": "return __int_as_float(__float_as_int(x) + 0x80000 & 0xfff00000);",
    "bfloat16": "return __int_as_float(__float_as_int(x) + 0x8000 & 0xffff0000);",
    "tf32": "return __int_as_float(__float_as_int(x) + 0x1000 & 0xffffe000);",
    "tf32, and three values as they are": (
        f"{_FEW_VALUES} return __int_as_float(__float_as_int(x) & 0xffffe000);"
    ),
}


def source(narrow: str) -> str:
    return _SOURCE % {"narrow": narrow, "when": _IS_TIMED}


def test_an_honest_product_passes() -> None:
    result = graded("matmul", source("return x;"))
    assert result.right == result.of and result.speed is not None, result


@pytest.mark.parametrize("name", NARROW)
def test_a_product_of_fewer_bits_fails_where_it_is_timed(name: str) -> None:
    result = graded("matmul", source(NARROW[name]))
    failed = [case for case in result.cases if not case.passed]
    print(f"\n| {name} | {[case.message[:90] for case in failed]} |")
    assert failed, result
