"""Programs as different people write them: the change is named, and its edit agrees."""

from __future__ import annotations

import pytest

from tests.profiler.advice.styles.harness import Program, advised, agrees
from tests.profiler.advice.styles.loops import PROGRAMS as LOOPS
from tests.profiler.advice.styles.operators import KEPT
from tests.profiler.advice.styles.operators import PROGRAMS as OPERATORS

#: what an edit has, and what the cell has not
MARKS = {
    "topk": "topk(",
    "cdist": "cdist(",
    "matmul-not-outer": "einsum(",
    "fuse": "torch.compile",
    "pad": "pad(",
    "sdpa": "scaled_dot_product_attention(",
    "index-not-one-hot": "table[",
}


@pytest.mark.parametrize("program", [*OPERATORS, *LOOPS], ids=lambda one: one.name)
def test_a_program_is_named_and_edited(program: Program) -> None:
    changes, edits = advised(program)
    assert program.change in [one.name for one in changes[:2]]
    mark = MARKS.get(program.change, "")
    edits = [one for one in edits if one.name == program.change and mark in one.code]
    assert agrees(program, edits[0])


@pytest.mark.parametrize("program", KEPT, ids=lambda one: one.name)
def test_a_near_miss_stays(program: Program) -> None:
    _, edits = advised(program)
    assert program.change not in [one.name for one in edits]


@pytest.mark.parametrize(
    "source",
    [
        # the matrix is another one in each turn, or may be
        "u = b\nfor k in range(30):\n    u = torch.linalg.solve(I + k * A, u)\n",
        "u = b\nfor k in range(9):\n    A += I\n    u = torch.linalg.solve(I + A, u)\n",
        "u = b\nfor k in range(30):\n    u = torch.linalg.solve(A + noisy(I), u)\n",
    ],
)
def test_another_matrix_is_factored_again(source: str) -> None:
    setup = "A, I, b = torch.randn(8, 8), 9 * torch.eye(8), torch.randn(8)\n"
    setup += "def noisy(x):\n    return x + torch.rand(8, 8)\n"
    changes, _ = advised(Program("solve", "factor-once", setup, source))
    assert "factor-once" not in [one.name for one in changes]
