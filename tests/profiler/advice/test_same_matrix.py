"""One matrix that turns of a loop factor again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.techniques.operations.same_matrix import same_matrix

SETUP = (
    "A = torch.eye(6) * 9 + torch.rand(6, 6)\nA = A + A.T\nb = torch.randn(6)\n"
    "B = torch.randn(6, 3)\ny = []\n"
)


def repeated(
    source: str | None, name: str = "solve", count: int = 12, axes: int = 2
) -> Cell:
    cell, square = Cell(source), [48, 48]
    for _ in range(count):
        with cell.operator(f"aten::linalg_{name}"):
            if name == "solve":
                cell.call("aten::linalg_lu_factor_ex", 8_000, 90_000, dims=(square,))
                sides = [[2] * (axes - 2) + square, [48], [2] * (axes - 2) + [48, 1]]
                cell.call("aten::linalg_lu_solve", 8_000, 9_000, dims=tuple(sides))
            elif name == "eigh":
                cell.call("aten::_linalg_eigh", 8_000, 90_000, dims=(square,))
            else:
                cell.call(f"aten::linalg_{name}_ex", 8_000, 90_000, dims=(square,))
        cell.call("aten::add", 2_000, dims=([48, 1], [48, 1]))
    cell.wait()
    return cell


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (
            "x = b\nfor _ in range(12):\n    x = torch.linalg.solve(A, x + 1)\n"
            "    y.append(x.max())\n",
            "solve",
        ),
        (
            "def steps(M, x, n):\n    k = 0\n    while k < n:\n"
            "        for _ in range(2):\n            x = torch.linalg.solve(M, x) + B\n"
            "        k += 1\n    return x\nx = steps(A, B, 6)\n",
            "solve",
        ),
        (
            "x = b\nfor _ in range(12):\n    inverse = torch.linalg.inv(A)\n"
            "    x = inverse @ x + 1\n",
            "inv",
        ),
        (
            # each right side is drawn in its turn
            "for _ in range(12):\n"
            "    x = torch.rand(6) + torch.linalg.solve(A, torch.rand(6))\n",
            "solve",
        ),
        (
            "x = b\nfor _ in range(12):\n    values, Q = torch.linalg.eigh(A)\n"
            "    x = Q @ ((Q.T @ x) / values)\n",
            "eigh",
        ),
        (
            "x = B\nfor _ in range(12):\n"
            "    x = torch.cholesky_solve(x, torch.linalg.cholesky(A)) + 1\n",
            "cholesky",
        ),
    ],
)
def test_a_matrix_is_factored_once(tmp_path: Path, source: str, name: str) -> None:
    cell, fixed = repeated(source, name), Cell()
    fixed.call("aten::linalg_lu_factor_ex", 8_000, 90_000)
    for _ in range(12):
        if name == "solve":
            fixed.call("aten::linalg_lu_solve", 8_000, 9_000)
        fixed.call("aten::add", 2_000)
    fixed.wait()
    change = changes_of(same_matrix, cell.evidence(tmp_path))["factor-once"]
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed.window_ns <= change.high_ns < cell.window_ns
    assert agrees(change, source, SETUP, "x", "y")


@pytest.mark.parametrize(
    ("cell", "is_named"),
    [
        # the matrix is another one, or may be
        (repeated("for A in As:\n    x = torch.linalg.solve(A, x)\n"), False),
        (
            repeated("for n in ns:\n    A[n] += 1\n    x = torch.linalg.solve(A, x)\n"),
            False,
        ),
        (repeated("for n in ns:\n    f(A)\n    x = torch.linalg.solve(A, x)\n"), False),
        (repeated("x = torch.linalg.solve(A, x)\n"), False),
        (repeated(None), False),
        (repeated("for n in ns:\n    x = torch.linalg.solve(A, x)\n", count=2), False),
        (repeated("for n in ns:\n    x = my.solve(A, x)\n"), False),
        # batches, and results that are written to
        (repeated("for n in ns:\n    x = torch.linalg.solve(A, x)\n", axes=3), True),
        (
            repeated("for n in ns:\n    x = torch.linalg.inv(A)\n    x += n\n", "inv"),
            True,
        ),
        *(
            (repeated(f"for n in ns:\n    {body}\n", name), True)
            for body, name in (
                ("xs = [torch.linalg.solve(A, b) for b in bs]", "solve"),
                ("x = torch.linalg.solve(A, b) if n else b", "solve"),
                ("if n: x = torch.linalg.solve(A, b)", "solve"),
                ("try: x = torch.linalg.solve(A, b)\n    except E: pass", "solve"),
                ("advance()\n    x = torch.linalg.solve(A, b)", "solve"),
                ("w, V = torch.linalg.eigh(A)\n    w *= n", "eigh"),
                ("w, V = torch.linalg.eigh(A)\n    y.append(w)", "eigh"),
                ("y.append(torch.linalg.inv(A))", "inv"),
                ("y.append(torch.linalg.inv(A).mul_(n))", "inv"),
                ("self.inverse = torch.linalg.inv(A)", "inv"),
            )
        ),
    ],
)
def test_other_matrices_stay(tmp_path: Path, cell: Cell, is_named: bool) -> None:
    change = changes_of(same_matrix, cell.evidence(tmp_path)).get("factor-once")
    assert (change is not None) is is_named
    assert change is None or not change.code


def test_a_matrix_that_is_trained_stays(tmp_path: Path) -> None:
    cell = repeated("for _ in range(12):\n    loss = torch.linalg.solve(A, b).sum()\n")
    name = "autograd::engine::evaluate_function: SumBackward0"
    cell.call(name, 2_000)
    change = changes_of(same_matrix, cell.evidence(tmp_path))["factor-once"]
    assert not change.code
