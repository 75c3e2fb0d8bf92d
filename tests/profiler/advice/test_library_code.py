"""Sketches of streams, pinned memory, CuPy and JAX in the names of a cell."""

from __future__ import annotations

import pytest

from tests.profiler.advice.exam_changes import change_of
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.library_code import cupy_code, jax_code


def test_lines_are_those_of_the_cell() -> None:
    assert change_of("cupy_chain", "cupy-fuse").line == 1
    assert change_of("jax_without_jit", "jax-jit").line == 3


@pytest.mark.parametrize(
    "source",
    [
        # cupy.fuse takes no products, and one pass gives one result of each element
        "y = cp.sqrt(a @ b + 1) * 2",
        "y = cp.sqrt(a[:4] + 1) * cp.sum(b * 2)",
        "y = model(a)\nz = cp.sqrt(a + 1) * 2",
        "y = np.sqrt(a + 1) * 2",
        "y = (",
    ],
)
def test_what_cupy_can_not_surely_fuse_is_not_written(source: str) -> None:
    assert cupy_code(CellCode(source), ["add", "sqrt", "multiply"]) is None


def test_a_chain_of_cupy_within_an_expression() -> None:
    source = "%%gpuprof\ny = cupy.sqrt(a + 1) * 2"
    fused = cupy_code(CellCode(source), ["add", "sqrt"])
    assert fused is not None
    assert "    @cupy.fuse()\n    def fused_" in fused.code
    assert "(a):\n        return cupy.sqrt(a + 1)\ny = fused_" in fused.code


@pytest.mark.parametrize(
    "source",
    [
        None,
        "y = jnp.tanh(x)\nz = jnp.exp(y)",
        "y = jnp.tanh(x) + model(x)",
        "y = model(x)\nz = jnp.tanh(y)",
        # a compiled function must know them before
        "y = jnp.mean(x, axis) * 2",
        "y = jnp.sum(x, axis=axis) * 2",
        "y = jnp.tanh(x[:size])",
        "y = jnp.reshape(x, (rows, 4))",
        "y = jnp.tanh(x) if x else x",
        "y = jnp.tanh(x" + " + x" * 3_000 + ")",
    ],
)
def test_what_jax_can_not_surely_compile_is_not_written(source: str | None) -> None:
    assert jax_code(CellCode(source)) is None


def test_what_jax_compiles_has_a_name_of_its_own() -> None:
    fused = jax_code(CellCode("for step in range(9):\n    x = jnp.tanh(x) * 2"))
    assert fused is not None
    assert fused.code.startswith("import jax\nif")
    assert "    @jax.jit\n    def step_" in fused.code
    assert "    x = step_" in fused.code
