"""Sources of which an edit would compute something else, and those that it keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.gpu.exam.agreement import differences, outputs
from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_operations import broadcasts, chooses, solves, turns
from tests.profiler.advice.test_read_back import SMALL, reads
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.product_code import product_code
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.techniques.host.read_back import read_back
from warpbook_profiler.techniques.operations.matrix_loop import matrix_loop
from warpbook_profiler.techniques.operations.one_hot import one_hot
from warpbook_profiler.techniques.operations.pairs import pairs
from warpbook_profiler.techniques.operations.scan import scan

HOT = "hot = {}\nhot.scatter_({})\ny = hot @ table\n"
ROWS = "acc = 0\nfor i in range(64):\n    acc = {}\n    out.append(acc)\n"
IN_PLACE = "for i in range(64):\n    acc += x[i]\n    out[i] = acc\n"
FACTORS = "y = []\nfor one in A:\n    y.append({}(one))\n"


def products(source: str) -> Cell:
    return broadcasts(source, "aten::mul", "aten::sum")


def squares(source: str) -> Cell:
    return broadcasts(source, "aten::sub", "aten::pow", "aten::sum")


def norms(source: str) -> Cell:
    return broadcasts(source, "aten::sub", "aten::linalg_vector_norm")


def sums(source: str) -> Cell:
    return turns(source, "aten::add", copies=False)


def copies(source: str) -> Cell:
    return reads(source, SMALL)


@pytest.mark.parametrize(
    ("rule", "made", "source"),
    [
        (pairs, norms, "y = (a[:, None] - b[None]).norm(1, dim=-1)"),
        (pairs, squares, "d = a[:, None] - b[None]\na += 1\ny = (d ** 2).sum(-1)"),
        (pairs, products, "d = a[:, None] * b[None]\nb[0] = 1\ny = d.sum(-1)"),
        (one_hot, chooses, "h = F.one_hot(i, 9)\ni = i.flip(0)\ny = h @ table"),
        (one_hot, chooses, HOT.format("torch.full((9, 9), 0.1)", "1, i[:, None], 1")),
        (one_hot, chooses, HOT.format("torch.zeros(9, 9)", "0, i[:, None], 1")),
        (one_hot, chooses, HOT.format("torch.zeros(9, 9)", "1, i[:, None], 2")),
        (scan, sums, ROWS.format("torch.add(acc, x[i], alpha=2)")),
        (scan, sums, ROWS.format("acc + x[:, i]")),
        (scan, sums, "x = [a, b]\n" + ROWS.format("acc + x[i]")),
        # in place: of a view, of a tensor with two names, of one that is kept
        (scan, sums, "acc = x[0].view(-1)\n" + IN_PLACE),
        (scan, sums, "acc = torch.zeros(8)\nfirst = acc\n" + IN_PLACE),
        (scan, sums, ROWS.format("acc + x[i]") + "acc /= 64\n"),
        # of other shapes, of other dtypes, of masks
        *(
            (scan, of_kind, "acc = torch.zeros(8)\n" + IN_PLACE)
            for of_kind in (
                lambda source: turns(source, "aten::add", dims=([1, 8], [8])),
                lambda source: turns(source, "aten::add", kept=([8, 8], [8])),
                lambda source: turns(source, "aten::add", dtype="bool"),
            )
        ),
        (matrix_loop, solves, "A = [a, b]\n" + FACTORS.format("torch.inverse")),
        (matrix_loop, solves, FACTORS.format("torch.linalg.qr")),
        (matrix_loop, solves, FACTORS.format("solver.solve")),
        (matrix_loop, solves, FACTORS.format("torch.inverse") + "else:\n    z = 1\n"),
        (read_back, copies, "for i in n:\n    step(x)\n    y = x[i].cpu()\n"),
    ],
)
def test_no_edit_is_made(
    tmp_path: Path, rule: Rule, made: Callable[[str], Cell], source: str
) -> None:
    changes = changes_of(rule, made(source).evidence(tmp_path)).values()
    assert not any(one.code for one in changes)


ENDS = ["out.append(acc * 2)\n", "out.pop()\n", "", "z = torch.stack(out)\nz += 1\n"]


@pytest.mark.parametrize("after", ENDS)
def test_a_scan_keeps_what_its_loop_left(tmp_path: Path, after: str) -> None:
    source = (
        "acc = torch.zeros(8)\nout = []\nfor i in range(64):\n    row = x[i]\n"
        f"    acc = acc + row\n    out.append(acc)\n{after}y = torch.stack(out)\n"
    )
    change = changes_of(scan, sums(source).evidence(tmp_path))["scan"]
    assert agrees(change, source, "x = torch.randn(64, 8)", "y", "row", "acc", "out")


def test_a_scan_of_sums_of_exponentials(tmp_path: Path) -> None:
    source = (
        "acc = x[0]\n" + ROWS.format("torch.logaddexp(acc, x[i])").partition("\n")[2]
    )
    cell = turns(source, "aten::logaddexp", copies=False)
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    setup = "x, out = torch.randn(64, 8), []"
    assert agrees(change, source, setup, "acc", "out", "i")


def test_a_scan_of_rows_after_the_first(tmp_path: Path) -> None:
    source = (
        "acc = x[0]\nsums = [acc]\nfor row in x[1:]:\n    acc = acc + row\n"
        "    sums.append(acc)\ny = torch.stack(sums)\n"
    )
    change = changes_of(scan, sums(source).evidence(tmp_path))["scan"]
    assert agrees(change, source, "x = torch.randn(65, 8)", "y", "row", "acc", "sums")


@pytest.mark.parametrize(
    "setting", ["a.add_(1)", "a[0] = 1", "f(a)", "b = a.T; b += 1"]
)
def test_what_changes_is_not_padded_before(setting: str) -> None:
    assert product_code(CellCode("y = a @ c"), 1).padded(8)
    code = product_code(CellCode(f"{setting}\ny = a @ c"), 2)
    assert code is not None and not code.padded(8)


@pytest.mark.parametrize("factor", [1, 2])
def test_objects_of_the_cells_own_class_are_compared(factor: int) -> None:
    setup = (
        "class Sums:\n    def __init__(self, xs):\n        self.sums = {0: xs.sum()}"
    )
    given = {"__name__": "__main__", "torch": torch}
    source = f"{setup}\nsums = Sums(torch.ones(4))"
    edited = source.replace("xs.sum()", f"xs.sum() * {factor}")
    before, after = outputs(source, given.copy()), outputs(edited, given.copy())
    assert differences(before, after, "", source) == ["sums"][: factor - 1]


def test_a_result_that_an_edit_drops_is_told() -> None:
    source = "d = x * 2\nfor i in range(3):\n    y = d + i\n"
    before = {"d": 2, "i": 2, "y": 4}
    assert differences(before, {"y": 4}, "scan", source) == []
    assert differences(before, {"d": 2, "i": 2}, "scan", source) == ["y"]


#: by operators, the texts of which there is one in a source that calls them
PARTS = {"exp": "exp", "square": "square", "mul": "", "add": ""}
PARTS |= {"rsub": "1 -", "sub": " - 1", "sum": "sum("}


def carries(source: str, others: int = 0, kind: str = "float") -> Cell:
    cell, row = Cell(source), (4_096,)
    for _ in range(others):
        cell.call("aten::mm", 4_000, dims=((64, 64), (64, 64)))
    for _ in range(64):
        cell.views("aten::select")
        for name in (one for one, text in PARTS.items() if text in source):
            cell.call(f"aten::{name}", 3_000, dims=(row,), dtype=kind)
    cell.wait()
    return cell


FOG = (
    "light, seen = torch.ones(3), torch.zeros(3, 2)\nfor i in range({}):\n    {}\n"
    "y = seen\nz = light\n"
)
SEEN = "seen = seen + (light * (1 - p)).unsqueeze(1) * rgb[i]"


@pytest.mark.parametrize(
    ("source", "is_edited"),
    [
        (FOG.format("len(d)", f"p = torch.exp(-d[i]); {SEEN}; light = light * p"), 1),
        (FOG.format("40", f"p = d[i]; light *= torch.exp(-p); {SEEN}"), 1),
        (
            "def walk(v, at):\n    energy = 0.0\n    for i in range(v.shape[1]):\n"
            "        at = v[:, i] * 0.1 + at\n        bent = at.square() - 1\n"
            "        energy = energy + (bent * m).sum()\n    return at, energy\n"
            "z, y = walk(d.T.contiguous(), d[0])\n",
            1,
        ),
        # light that the next row dims by what was seen, or that is no product
        (FOG.format("64", f"p = d[i] * light; {SEEN}; light = light * p"), 0),
        (FOG.format("64", f"p = d[i]; {SEEN}; light = light * p + d[i]"), 0),
        # other rows, what changes in place, and what may do anything
        (FOG.format("63", f"p = d[i + 1]; {SEEN}; light = light * p"), 0),
        (
            "light = m\nseen = torch.zeros(3, 2)\nfor i in range(64):\n"
            f"    p = d[i]; light *= p; {SEEN}\ny = seen\nz = light\n",
            0,
        ),
        (FOG.format("64", f"p = d[i]; {SEEN}; light *= p") + "w = p\n", 0),
        (
            "out = torch.ones(3)\nlight = out.view(3)\nseen = torch.zeros(3, 2)\n"
            f"for i in range(64):\n    p = d[i]; {SEEN}; light *= p\n",
            0,
        ),
        # a number of each row, not one of each part
        (
            FOG.format(
                "3", "seen = seen + light[:, None] * rgb[i]; light = light * v[i]"
            ),
            1,
        ),
        (FOG.format("64", f"p = f(d[i]); {SEEN}; light = light * p"), 0),
        (FOG.format("64", f"p = d[i]; {SEEN}; light = light * p; print(p)"), 0),
    ],
)
def test_what_is_carried_through_rows_is_scanned(
    tmp_path: Path, source: str, is_edited: int
) -> None:
    changes = changes_of(scan, carries(source).evidence(tmp_path))
    assert any(change.code for change in changes.values()) == bool(is_edited)
    setup = "d, rgb, m = torch.rand(64, 3), torch.rand(64, 3, 2), torch.rand(3)"
    setup += "\nv = torch.rand(3)"
    whole = changes_of(scan, carries(source, kind="long int").evidence(tmp_path))
    assert not any(change.code for change in whole.values())
    if is_edited:
        assert changes["scan"].basis == "predicted"
        assert agrees(changes["scan"], source, setup, "y", "z")
    # a loop that is a small part of the cell
    assert not changes_of(scan, carries(source, others=900).evidence(tmp_path))


STEPS = (
    "h = h0\nfor _ in range(300):\n    h = torch.tanh(h @ w) * 0.5\n    h = h + 0.1\n"
)
SUMS = (
    "total, sums = x[0], []\nfor i in range(8):\n    total = total + x[i]\n"
    "    sums.append({})\n"
)


@pytest.mark.parametrize("kept", ["torch.sin(total)", "total * 2"])
def test_a_loop_beside_running_rows_is_not_theirs(tmp_path: Path, kept: str) -> None:
    cell = Cell(SUMS.format(kept) + STEPS)
    for _ in range(8):
        for name in ("add", "sin" if "sin" in kept else "mul"):
            cell.call(f"aten::{name}", 3_000, dims=((64,),))
    for _ in range(300):
        for name in ("matmul", "tanh", "mul", "add"):
            cell.call(f"aten::{name}", 3_000, dims=((64, 64),))
    cell.wait()
    assert not changes_of(scan, cell.evidence(tmp_path))


def test_running_rows_have_the_name_and_line_that_they_have_in_the_cell(
    tmp_path: Path,
) -> None:
    source = "a, b = 2., 3.\nc, d = 4., 5.\nout = torch.zeros(65, 9)\n"
    source += "for i in range(64):\n    out[i + 1] = out[i] + torch.sin(x[i]) * b\n"
    cell = Cell(source)
    for _ in range(64):
        for name in ("sin", "mul", "add", "copy_"):
            cell.call(f"aten::{name}", 3_000, dims=((9,), (9,)))
    cell.wait()
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    assert change.line == 4 and "Compute out for all rows" in change.title


DENSITY = (
    "def density(a, b, scale):\n    root = torch.linalg.cholesky(a)\n"
    "    z = torch.linalg.solve_triangular(root, b, upper=False)\n"
    "    return scale - z.square().sum(0) - root.diagonal().log().sum()\n"
)


@pytest.mark.parametrize(
    ("rows", "result"),
    [
        ("[density(m, v, 2) for m, v in zip(A, b)]", "density, in_dims=(0, 0, None)"),
        ("[density(m, v, s) for v, m in zip(b, A)]", "density, in_dims=(0, 0, None)"),
        ("[density(m, w, s) for m in A]", "density, in_dims=(0, None, None)"),
        # a row that is another thing, one left out, a list, and one that may end first
        ("[density(m + 1, v, s) for m, v in zip(A, b)]", ""),
        ("[density(m, v, s) for m, v in zip(A, b) if v.sum() > 0]", ""),
        ("[density(m, v, s) for m, v in zip(A, [*b])]", ""),
        ("[density(m, w, s) for m, _ in zip(A, b[:9])]", ""),
    ],
)
def test_a_function_of_each_matrix_is_mapped(
    tmp_path: Path, rows: str, result: str
) -> None:
    setup = (
        "A = torch.randn(40, 6, 6); A = A @ A.mT + torch.eye(6)\n"
        "b = torch.randn(40, 6, 1); w, s = b[0], 0.5\n"
    )
    source = f"{DENSITY}y = torch.stack({rows})\n"
    change = changes_of(matrix_loop, solves(source).evidence(tmp_path))["batch-linalg"]
    assert bool(result) == bool(change.code)
    assert f"torch.vmap({result})" in change.code or not result
    assert not result or agrees(change, source, setup, "y")
    # who prints, draws or asks for a value does so for each
    for line in ("print(a)", "b = torch.randn(6, 1)", "assert a.sum() > 0"):
        other = source.replace("    root", f"    {line}\n    root", 1)
        change = changes_of(matrix_loop, solves(other).evidence(tmp_path))
        assert not change["batch-linalg"].code


def test_what_is_mapped_has_memory_of_its_own(tmp_path: Path) -> None:
    source = (
        "def turn(a):\n    b = torch.linalg.inv(a)\n    return a.T\n"
        "y = torch.stack([turn(a) for a in A])\ny.zero_()\nz = A.sum()\n"
    )
    change = changes_of(matrix_loop, solves(source, name="inv").evidence(tmp_path))
    setup = "A = torch.randn(40, 6, 6) + 9 * torch.eye(6)\n"
    assert "vmap(turn)(A).clone()" in change["batch-linalg"].code
    assert agrees(change["batch-linalg"], source, setup, "y", "z")
