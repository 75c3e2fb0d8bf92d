"""Kernels whose names say nothing: the operator that launched them tells their kind."""

from pathlib import Path

import pytest

from tests.profiler.trace.test_kernel_work import MUCH, Operator, work, written
from tests.profiler.trace.written import report_of
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.flops import model

FACTORISE, SOLVE = "aten::linalg_cholesky_ex", "aten::linalg_solve_triangular"
SPECTRUM = "aten::_fft_c2c"
SPARSE = "void cusparse::csrmm_alg2_kernel<float>"


def solves(name: str, *dims: list[int]) -> Operator:
    return name, [*dims, []], ["", "", ""]


@pytest.mark.parametrize(
    ("operator", "kernel_name", "dtype", "bound"),
    [
        (solves(FACTORISE, [8192, 8192]), "potrf_alg2", "float", "FP32 cores"),
        (solves(FACTORISE, [8192, 8192]), "potrf_alg2", "double", "FP64 units"),
        # a matrix of 16 is read and written for a few operations with each number
        (solves(FACTORISE, [4096, 16, 16]), "batched", "float", "memory"),
        (solves(SOLVE, [8192, 8192], [8192, 4096]), "mul32", "float", "FP32 cores"),
        (solves(SOLVE, [8192, 8192], [8192, 1]), "mul32", "float", "memory"),
        (solves(SPECTRUM, [512, 65536]), "regular_fft", "float", "memory"),
        ("aten::_fft_r2c", "multi_bluestein_fft", "float", "unknown"),
        (solves("mine::solve", [8192, 8192]), "potrf_alg2", "float", "unknown"),
        # 30,000 rows of 128 by a matrix of which few elements are stored
        (
            ("aten::addmm", [[30000, 128], [30000, 30000], [30000, 128]], ["", "", ""]),
            *(SPARSE, "float", "memory"),
        ),
    ],
)
def test_the_operator_tells_what_limits_a_solver(
    tmp_path: Path, operator: Operator | str, kernel_name: str, dtype: str, bound: str
) -> None:
    trace = written(operator, (kernel_name, 900.0, MUCH), dtype=dtype)
    assert {*work(report_of(tmp_path, trace))} == {bound}


@pytest.mark.parametrize(
    ("product", "dtype", "bounds"),
    [
        # in double precision both units are as fast
        ("sm90_xmma_gemm_f64f64_f64f64_f64_nn_n", "double", {"FP64 units"}),
        (
            "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n",
            "float",
            {"tensor cores", "FP32 cores"},
        ),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_ffma", "float", {"FP32 cores"}),
    ],
)
def test_panels_and_products_of_a_factorization_have_their_units(
    tmp_path: Path, product: str, dtype: str, bounds: set[str]
) -> None:
    operator = solves("aten::linalg_lu_factor_ex", [8192, 8192])
    kernels = [("panel_of_pivots", 400.0, MUCH), (product, 600.0, MUCH)]
    trace = written(operator, *kernels, dtype=dtype)
    assert {*work(report_of(tmp_path, trace))} == bounds


@pytest.mark.parametrize(
    ("name", "dims", "flops"),
    [
        ("aten::linalg_lu_factor_ex", [(300, 300)], 2 * 300**3 // 3),
        (FACTORISE, [(4, 300, 300)], 4 * 300**3 // 3),
        ("aten::geqrf", [(300, 300)], 4 * 300**3 // 3),
        (SOLVE, [(300, 300), (300, 7)], 300 * 300 * 7),
    ],
)
def test_a_solver_takes_lapacks_count(
    name: str, dims: list[tuple[int, ...]], flops: int
) -> None:
    called = Operands((*dims, ()), ("float",) * len(dims), ("",) * (len(dims) + 1))
    done = model(name, called)
    assert done is not None and done.flops == flops
