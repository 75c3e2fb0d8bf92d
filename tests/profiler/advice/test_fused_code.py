"""A chain of a trace in a cell's source, written as one compiled function."""

from __future__ import annotations

import ast
import re

import pytest

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.fused_code import fused_code


def written(source: str, *chain: str, line: int | None = None) -> str | None:
    fused = fused_code(CellCode(source), chain, line, "torch.compile")
    if fused is None:
        return None
    ast.parse(fused.code)
    code = re.sub(r"fused_[0-9a-f]{4}\b", "fused", fused.code)
    code = code.replace('if "fused" not in globals():\n    @torch.compile\n', "")
    return code.replace("import torch\n", "").replace("@torch.compile\n", "")


@pytest.mark.parametrize(
    ("source", "chain"),
    [
        ("y = 1 - x.exp()", ("exp", "sub")),
        ("y = 1 / (1 + torch.exp(-x))", ("neg", "exp", "add", "reciprocal", "mul")),
        ("y = (x * (2 / math.sqrt(64))).square()", ("mul", "pow")),
        ("y = x[0].float().tanh().mul_(2)", ("aten::tanh", "aten::mul_")),
        ("y = x[0].float().tanh().mul_(2)", ("copy_", "tanh", "mul_")),
    ],
)
def test_operators_follow_one_another_as_python_calls_them(
    source: str, chain: tuple[str, ...]
) -> None:
    code = written(source, *chain)
    assert code is not None and code.endswith("\ny = fused(x)")


def test_all_names_of_a_chain_are_given_back() -> None:
    source = "a = x * 2  # twice\nb = a + 1\nz = b.tanh()\nprint(b)"
    assert written(source, "mul", "add", "tanh") == (
        "    def fused(x):\n        a = x * 2\n        b = a + 1\n"
        "        z = b.tanh()\n"
        "        return a, b, z\na, b, z = fused(x)  # twice\nprint(b)"
    )


def test_a_value_of_the_turn_before_is_given_back() -> None:
    code = written("for _ in range(9):\n    x = x * 2\n    y = x + 1", "mul", "add")
    assert code is not None
    assert code.endswith("for _ in range(9):\n    x, y = fused(x)\n")


def test_a_function_of_the_cell_is_compiled_itself() -> None:
    source = "def scaled(x, by=2):\n    y = x * by\n    return y.tanh()\nscaled(data)"
    assert written(source, "mul", "tanh") == source


def test_numbers_that_a_function_is_given_are_no_part_of_a_chain() -> None:
    source = (
        "def priced(z, rate, years):\n    dt = years / 64\n"
        "    growth = (rate - 0.5) * dt + rate * z\n    return growth.cumsum(0).exp()\n"
        "y = torch.stack([priced(z, rate, 1.0) for rate in rates])"
    )
    assert written(source, "mul", "add", "cumsum", "exp") == source


@pytest.mark.parametrize(
    "source",
    [
        # which of the two it is
        "y = x * 2 + 1; z = (a * b).sum(); w = a * 3 + 1",
        "y = (x * 2).tanh() + 1",
    ],
)
def test_all_of_a_cell_is_compiled_where_the_chain_is_somewhere_in_it(
    source: str,
) -> None:
    code = written(source, "mul", "add")
    assert code is not None and "fused(x" in code.splitlines()[-1]


def test_a_model_that_does_all_is_compiled() -> None:
    assert written("for x in xs:\n    y = m(x)", "mul", "add") == (
        "m_compiled = torch.compile(m)\nfor x in xs:\n    y = m_compiled(x)"
    )
    trained = written("loss = m(x)\nloss.backward()\nopt.step()", "mul", "add")
    assert trained is not None and "loss = m_compiled(x)\n" in trained
    assert not written("m = Net()\nfor x in xs:\n    y = m(x)", "mul", "add")


@pytest.mark.parametrize(
    "source",
    [
        # it may be in the model
        "y = m(x) * 2 + 1",
        "x = m(x)\ny = x * 2 + 1",
        # not one after the other
        "y = x * 2\nfor _ in z:\n    y = y + 1",
        # not one value of names
        "y[0] = x * 2\nz = y + 1",
        "y = [x * 2 + 1 for x in xs]",
        "def parts(x):\n    yield x * 2 + 1",
        "y = (",
        "y = " + "(" * 80 + "x * 2" + ")" * 80,
        "y = x" + " + x" * 3_000,
    ],
)
def test_what_is_not_sure_is_not_written(source: str) -> None:
    assert written(source, "mul", "add") is None


def test_a_recorded_line_tells_which_chain_it_is() -> None:
    source = "y = m(x)\nz = x * 2 + 1\nw = y * 3 + 1"
    assert written(source, "mul", "add", line=3) == (
        "    def fused(y):\n        return y * 3 + 1\n"
        "y = m(x)\nz = x * 2 + 1\nw = fused(y)"
    )
    assert written(source, "mul", "add", line=1) is None
