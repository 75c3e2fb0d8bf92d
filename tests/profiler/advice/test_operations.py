"""Rules for results that another operation of torch gives faster."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, Dims, changes_of
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.scans import scans
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.operations.matrix_loop import matrix_loop
from warpbook_profiler.techniques.operations.one_hot import one_hot
from warpbook_profiler.techniques.operations.pairs import pairs
from warpbook_profiler.techniques.operations.scan import scan
from warpbook_profiler.techniques.operations.top_k import top_k

MS = 1_000_000


def holds(change: Change, fixed: Cell) -> bool:
    """Tell whether the time of the changed cell is in the change's range."""
    low_ns, high_ns = change.low_ns or 0, change.high_ns
    return low_ns <= fixed.window_ns <= (high_ns or fixed.window_ns)


def sorts(source: str | None, then: str = "aten::slice", dims=([256, 50_000],)) -> Cell:
    cell = Cell(source)
    scalars = ["", "False", "-1", "True"]
    with cell.operator("aten::sort", (*dims, [], [], []), scalars=scalars):
        cell.kernel(2 * MS)
        cell.kernel(2 * MS)
    if then == "aten::slice":
        cell.views("aten::slice", "aten::slice")
    else:
        cell.call(then, 60_000, dims=dims)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    "source",
    [
        "best = x.sort(dim=-1, descending=True).values[:, :8]",
        "v, i = torch.sort(x, 1, True)\nbest = v[..., :8]\nat = i[..., :8]",
        "order = torch.argsort(x, 1)\nbest = x.gather(1, order[:, 0:8])",
        "ranked = x.sort()\nbest, at = ranked[0][:, :8], ranked[1][:, :8]",
        "k = 8\nv, _ = torch.sort(x, -1, descending=True)\nbest = v[:, :k]",
        "class Best:\n    k = 8\n    def __call__(self, x):\n"
        "        _, at = x.sort(dim=1)\n        return at[:, : self.k]\n"
        "best = Best()(x)",
        # the order is deleted then, so that its name is not left
        "v, _ = torch.sort(x, dim=-1, descending=True)\n"
        "best = v[..., :8].contiguous()\ndel v, _",
        "def best_of(x, k):\n    order = x.argsort(dim=1)\n"
        "    best = x.gather(1, order[:, -k:])\n    del order\n    return best\n"
        "best = best_of(x, 8)",
        "best = []\nfor one in (x, x + 1):\n    v, at = one.sort(dim=-1)\n"
        "    best.append(v[..., -8:])\n    del v, at\nbest = torch.cat(best)",
        "best = x.sort(dim=1)[0].narrow(dim=1, start=0, length=8)",
        "best = torch.narrow(torch.sort(x, 1, True).values, 1, 0, 8)",
    ],
)
def test_the_first_of_a_sort_are_a_topk(tmp_path: Path, source: str) -> None:
    cell, fixed = sorts(source), Cell()
    fixed.call("aten::topk", 220_000)
    fixed.wait()
    change = changes_of(top_k, cell.evidence(tmp_path))["topk"]
    assert holds(change, fixed)
    assert "topk(" in change.code and "sort" not in change.code
    assert agrees(change, source, "x = torch.randn(16, 500)", "best")


@pytest.mark.parametrize(
    "cell",
    [
        # all of the order is of use
        sorts("v, i = x.sort(-1)\nbest = v[:, :8]\nc = v.cumsum(-1)"),
        sorts(None, then="aten::cumsum"),
        # an element, which may be the last one
        sorts("y = ordered(x)[0]", then="aten::select", dims=([1 << 20],)),
        # the first rows, not the first of each row
        sorts("best = x.sort(-1).values[:8]"),
        # other sizes each time
        sorts("v, _ = x.sort(-1)\nbest = v[:, : self.next()]"),
        # read once more before it is deleted
        sorts("v, i = x.sort(-1)\nbest = v[:, :8]\nmost = v.median()\ndel v, i"),
        # not from the first on
        sorts("best = x.sort(-1).values.narrow(1, 1, 8)"),
        # a large part
        sorts("best = x.sort(-1).values[:, :40000]"),
    ],
)
def test_other_sorts_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(top_k, cell.evidence(tmp_path))


@pytest.mark.parametrize(
    "source",
    [
        "v, i = x.sort(-1)\nbest = v[:, :8]\nif best.any():\n    del v",
        "for one in xs:\n    v, i = one.sort(-1)\n    best = v[:, :8]\n"
        "    if best.any():\n        break\n    del v, i\n",
        "for one in xs:\n    if big:\n        v, i = one.sort(-1)\n"
        "        best = v[:, :8]\n    else:\n        del v, i\n",
    ],
)
def test_a_sort_that_is_deleted_at_times_keeps_its_order(
    tmp_path: Path, source: str
) -> None:
    assert changes_of(top_k, sorts(source).evidence(tmp_path))["topk"].code == ""


def test_a_sort_in_a_library_is_told_without_an_edit(tmp_path: Path) -> None:
    for source in (None, "y = sampled(logits)"):
        change = changes_of(top_k, sorts(source).evidence(tmp_path))["topk"]
        assert change.code == ""


def chooses(
    source: str | None,
    smoothed: bool = False,
    rows: tuple[int, ...] = (4096,),
    batch: tuple[int, ...] = (),
    has_product: bool = True,
) -> Cell:
    cell = Cell(source)
    whole = [*rows, 8192]
    with cell.operator("aten::one_hot"):
        cell.call("aten::fill_", 80_000, dims=(whole, []), dtype="long int")
        scalars = ["", "-1", "", "1"]
        dims = (whole, [], [*rows, 1], [])
        with cell.operator("aten::scatter_", dims, "long int", scalars=scalars):
            cell.kernel(5_000)
    with cell.operator("aten::to"):
        cell.call("aten::copy_", 200_000, dims=(whole, whole, []))
    if smoothed:
        cell.call("aten::mul", 200_000, dims=(whole, []))
    if has_product:
        dims = ([*batch, 4096, 8192], [*batch, 8192, 512])
        with cell.operator("aten::matmul"):
            cell.call("aten::bmm" if batch else "aten::mm", 1_300_000, dims=dims)
    else:
        cell.call("aten::index", 6_000)
    cell.wait()
    return cell


def compared(is_scattered: bool) -> Cell:
    """Make the matrix by comparing with a range, or by a functional scatter."""
    cell, whole = Cell(), [4096, 8192]
    if is_scattered:
        cell.call("aten::fill_", 80_000, dims=(whole, []))
        dims, scalars = (whole, [], [4096, 1], []), ["", "1", "", "1."]
        with cell.operator("aten::scatter", dims, scalars=scalars):
            cell.call("aten::copy_", 80_000, dims=(whole, whole, []))
            cell.kernel(5_000)
    else:
        with cell.operator("aten::arange", ([], [], []), scalars=["8192", "", ""]):
            scalars = ["0", "8192", "1", ""]
            with cell.operator("aten::arange", ([], [], [], [0]), scalars=scalars):
                cell.kernel(1_000)
        cell.call("aten::eq", 100_000, dims=([4096, 1], [8192]), dtype="long int")
        with cell.operator("aten::to"):
            cell.call("aten::copy_", 200_000, dims=(whole, whole, []))
    with cell.operator("aten::matmul"):
        cell.call("aten::mm", 1_300_000, dims=(whole, [8192, 512]))
    cell.wait()
    return cell


@pytest.mark.parametrize("is_scattered", [True, False])
def test_matrices_of_ones_made_by_other_operators(
    tmp_path: Path, is_scattered: bool
) -> None:
    fixed = Cell()
    fixed.call("aten::index", 6_000)
    fixed.wait()
    changes = changes_of(one_hot, compared(is_scattered).evidence(tmp_path))
    assert holds(changes["index-not-one-hot"], fixed)


@pytest.mark.parametrize(
    "source",
    [
        "y = F.one_hot(ids, 8192).float() @ table",
        "y = torch.matmul(F.one_hot(ids, 8192).to(table.dtype), table)",
        None,
    ],
)
@pytest.mark.parametrize("rows", [(4096,), (16, 256)])
def test_a_one_hot_product_is_an_index(
    tmp_path: Path, source: str | None, rows: tuple[int, ...]
) -> None:
    cell, fixed = chooses(source, rows=rows), Cell()
    fixed.call("aten::index", 6_000)
    fixed.wait()
    change = changes_of(one_hot, cell.evidence(tmp_path))["index-not-one-hot"]
    assert holds(change, fixed)
    if source:
        setup = "ids = torch.randint(0, 8192, (9,)); table = torch.randn(8192, 4)"
        assert change.code == "y = table[ids]"
        assert agrees(change, source, setup, "y")


def test_a_scattered_matrix_is_an_index(tmp_path: Path) -> None:
    source = (
        "hot = torch.zeros(9, 8192)\nhot.scatter_(1, ids[:, None], 1.0)\n"
        "y = torch.matmul(hot, table)\n"
    )
    setup = "ids = torch.randint(0, 8192, (9,)); table = torch.randn(8192, 4)"
    changes = changes_of(one_hot, chooses(source).evidence(tmp_path))
    assert changes["index-not-one-hot"].code == "y = table[ids]\n"
    assert agrees(changes["index-not-one-hot"], source, setup, "y")
    # somebody else reads it
    changes = changes_of(one_hot, chooses(source + "n = hot.sum()").evidence(tmp_path))
    assert not changes


def test_a_matrix_that_others_read_is_made_as_before(tmp_path: Path) -> None:
    source = "hot = F.one_hot(ids, 8192).float()\ny = hot @ table, hot.sum(0)"
    cell, fixed = chooses(source), chooses(source, has_product=False)
    change = changes_of(one_hot, cell.evidence(tmp_path))["index-not-one-hot"]
    assert holds(change, fixed)
    setup = "ids = torch.randint(0, 8192, (9,)); table = torch.randn(8192, 4)"
    assert agrees(change, source, setup, "y")


def test_a_table_for_each_batch_is_not_indexed_as_one(tmp_path: Path) -> None:
    for batch, code in (((), "y = table[ids]"), ((1,), "")):
        cell = chooses("y = F.one_hot(ids, 8192).float() @ table", batch=batch)
        change = changes_of(one_hot, cell.evidence(tmp_path))["index-not-one-hot"]
        assert change.code == code


def test_smoothed_rows_are_no_index(tmp_path: Path) -> None:
    source = "y = (F.one_hot(ids, 8192).float() * 0.9 + 0.01) @ table"
    assert not changes_of(one_hot, chooses(source, True).evidence(tmp_path))
    assert not changes_of(one_hot, chooses(None, True).evidence(tmp_path))
    # the trace has the product of another cell's function
    assert not changes_of(one_hot, chooses(source).evidence(tmp_path))


def broadcasts(
    source: str | None, *members: str, rows: tuple[int, ...] = (), between: str = ""
) -> Cell:
    cell = Cell(source)
    one, two, whole = [2048, 1, 64], [1, 1024, 64], [2048, 1024, 64]
    first, *others, last = members
    cell.call(first, 250_000, dims=(one, two))
    for name in others:
        with cell.operator(name, (whole, []), scalars=["", "2"]):
            cell.kernel(250_000)
    if between:
        cell.call(between, 250_000, dims=(whole,))
    dims = (whole, [], [], []) if last == "aten::sum" else (whole, [], [], [], [])
    scalars = ["", "[-1]"] if last == "aten::sum" else ["", "2.", "[-1]"]
    with cell.operator(last, dims, scalars=scalars):
        cell.kernel(150_000)
    cell.wait()
    return cell


ROWS = "a = torch.randn(20, 64); b = torch.randn(30, 64)"


@pytest.mark.parametrize(
    "source",
    [
        "y = (a[:, None] * b[None]).sum(-1)",
        "pairs = a.unsqueeze(1) * b.unsqueeze(0)\ny = torch.sum(pairs, dim=-1)",
        "y = torch.sum(a.unsqueeze(1) * b, dim=-1)",
        "y = torch.sum(b[None, :, :] * a[:, None, :], -1)",
    ],
)
def test_a_sum_of_all_products_is_a_product(tmp_path: Path, source: str) -> None:
    cell, fixed = broadcasts(source, "aten::mul", "aten::sum"), Cell()
    if source.endswith("a[:, None, :], -1)"):
        cell = Cell(source)
        dims = ([1, 1024, 64], [2048, 1, 64])
        cell.call("aten::mul", 250_000, dims=dims)
        whole = ([2048, 1024, 64], [], [], [])
        with cell.operator("aten::sum", whole, scalars=["", "[-1]"]):
            cell.kernel(150_000)
        cell.wait()
    fixed.call("aten::bmm", 5_000)
    fixed.wait()
    change = changes_of(pairs, cell.evidence(tmp_path))["matmul-not-outer"]
    assert holds(change, fixed)
    if " * b, " not in source:
        assert "einsum" in change.code
        assert agrees(change, source, ROWS, "y")


@pytest.mark.parametrize(
    ("source", "members"),
    [
        (
            "y = ((a[:, None] - b[None]) ** 2).sum(-1)",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
        (
            "y = torch.sqrt(((a[:, None] - b[None]) ** 2).sum(-1)) / 3",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
        (
            "y = 1 + (a[:, None] - b[None]).square().sum(2) ** 0.5",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
        (
            "y = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(dim=2)",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
        (
            "y = torch.linalg.norm(a[:, None] - b[None, :], dim=-1)",
            ("aten::sub", "aten::linalg_vector_norm"),
        ),
        # what the cell deletes is not made any more
        (
            "gap = a.unsqueeze(1) - b.unsqueeze(0)\n"
            "y = gap.square().sum(dim=-1).sqrt()\ndel gap",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
        (
            "k = 2\ngap = a[:, None] - b[None]\ny = k * (gap**2).sum(-1)\ndel gap, k",
            ("aten::sub", "aten::pow", "aten::sum"),
        ),
    ],
)
def test_distances_of_all_pairs_are_cdist(
    tmp_path: Path, source: str, members: tuple[str, ...]
) -> None:
    cell, fixed = broadcasts(source, *members), Cell()
    with fixed.operator("aten::cdist"):
        for took in (2_000, 2_000, 2_000, 2_000, 2_000, 12_000, 8_000, 8_000):
            fixed.kernel(took)
    fixed.wait()
    change = changes_of(pairs, cell.evidence(tmp_path))["cdist"]
    assert holds(change, fixed)
    assert agrees(change, source, ROWS, "y")


@pytest.mark.parametrize(
    "cell",
    [
        # not linear before the sum
        broadcasts(
            "y = torch.relu(a[:, None] * b[None]).sum(-1)",
            *("aten::mul", "aten::sum"),
            between="aten::relu",
        ),
        # the differences are needed
        broadcasts(None, "aten::sub", "aten::pow", "aten::sum", between="aten::div"),
        broadcasts(
            "d = a[:, None] - b[None]\nn = (d ** 2).sum(-1)\nf = (d / n).sum(1)",
            *("aten::sub", "aten::pow", "aten::sum"),
        ),
        # no squares
        broadcasts(
            "y = (a[:, None] - b[None]).abs().sum(-1)",
            *("aten::sub", "aten::abs", "aten::sum"),
        ),
    ],
)
def test_other_pairs_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(pairs, cell.evidence(tmp_path))


def turns(
    source: str | None,
    name: str,
    copies: bool = True,
    count: int = 64,
    dims: Dims = ([4096], [4096]),
    kept: Dims = ([4096], [4096]),
    dtype: str = "float",
) -> Cell:
    cell = Cell(source)
    for _ in range(count):
        cell.views("aten::select")
        cell.call(name, 2_000, dims=(*dims, []), dtype=dtype)
        if copies:
            cell.views("aten::select")
            cell.call("aten::copy_", 2_000, dims=(*kept, []))
    if not copies:
        cell.call("aten::cat", 8_000)
    cell.wait()
    return cell


SUMS = "acc = torch.zeros(8)\nfor i in range(64):\n    {step}\n    out[i] = acc\n"
BEST = (
    "top = x[:, 0]\nkept = [top]\nfor i in range(1, 64):\n"
    "    top = {step}\n    kept.append(top)\nout = torch.stack(kept, 1)\n"
)


@pytest.mark.parametrize(
    ("source", "operation", "copies"),
    [
        (SUMS.format(step="acc = acc + x[i]"), "add", True),
        (SUMS.format(step="acc = x[i] + acc"), "add", True),
        (SUMS.format(step="acc += x[i]"), "add", True),
        (SUMS.format(step="acc = acc * x[i]").replace("zeros", "ones"), "mul", True),
        (BEST.format(step="torch.maximum(top, x[:, i])"), "maximum", False),
        (BEST.format(step="top.minimum(x[:, i])"), "minimum", False),
        (SUMS.format(step="row = x[i]; acc = acc + row"), "add", True),
    ],
)
def test_a_running_result_is_a_scan(
    tmp_path: Path, source: str, operation: str, copies: bool
) -> None:
    cell, fixed = turns(source, f"aten::{operation}", copies), Cell()
    fixed.call("aten::cumsum", 10_200 if copies else 3_500)
    if not copies:
        fixed.call("aten::cat", 8_000)
    fixed.wait()
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    assert holds(change, fixed)
    size = "64, 8" if copies else "8, 64"
    setup = f"x = torch.randn({size}); out = torch.empty(64, 8)"
    assert agrees(change, source, setup, "out", "acc" if copies else "top", "i")


def test_a_list_that_is_only_joined_is_not_made(tmp_path: Path) -> None:
    source = (
        "acc = torch.zeros(8)\nout = []\nfor row in x:\n    acc = acc + row\n"
        "    out.append(acc)\nout = torch.stack(out)\n"
    )
    cell = turns(source, "aten::add", copies=False)
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    assert "extend" not in change.code and "stack" not in change.code
    assert agrees(change, source, "x = torch.randn(64, 8)", "out", "acc", "row")


def test_a_list_ends_with_what_a_scan_leaves() -> None:
    source = (
        "low, seen = x[0], []\nfor row in x[1:]:\n"
        "    low = torch.minimum(low, row)\n    seen.append(low)\n"
    )
    edited, *_ = scans(CellCode(source))
    names = {"torch": torch, "x": torch.randn(64, 8)}
    exec(edited, names)
    assert names["seen"][-1] is names["low"] and len(names["seen"]) == 63


def test_a_scan_needs_no_rows_and_no_list_of_them(tmp_path: Path) -> None:
    source = (
        "acc = x[0]\nout = [acc]\nfor row in x[1:]:\n"
        "    acc = torch.maximum(acc, row)\n    out.append(acc)\n"
        "out = torch.stack(out)\n"
    )
    cell, fixed = Cell(source), Cell()
    with cell.operator("aten::unbind"):
        cell.views(*512 * ["aten::select"])
    # a tuple of all rows becomes objects of Python, and is given back after the loop
    cell.python(900_000)
    for _ in range(512):
        cell.call("aten::maximum", 2_000, dims=([4096], [4096]))
    cell.python(900_000)
    cell.call("aten::stack", 8_000)
    fixed.call("aten::cummax", 512 * 260)
    for one in (cell, fixed):
        one.call("aten::sum", 2_000_000)
        one.wait()
    assert holds(changes_of(scan, cell.evidence(tmp_path))["scan"], fixed)


@pytest.mark.parametrize(
    "step",
    ["acc = 0.9 * acc + x[i]", "acc = f(acc, x[i])", "acc = acc + acc * x[i]"],
)
def test_other_recurrences_are_no_scan(tmp_path: Path, step: str) -> None:
    cell = turns(SUMS.format(step=step), "aten::add")
    assert not changes_of(scan, cell.evidence(tmp_path))


FALLS = (
    "i = 1\nwhile i < 512:\n    top = torch.maximum(top, x[i])\n"
    "    fall = torch.maximum(fall, {})\n    i += 1\n"
)


@pytest.mark.parametrize(
    ("last", "basis"), [("sub", "predicted"), ("matmul", "not below")]
)
def test_rows_of_a_scan_that_are_passed_over(
    tmp_path: Path, last: str, basis: str
) -> None:
    cell, fixed = (
        Cell(FALLS.format("top - x[i]" if last == "sub" else "w @ top")),
        Cell(),
    )
    row = ([4096], [4096])
    for _ in range(511):
        cell.views("aten::select")
        cell.call("aten::maximum", 2_000, dims=row)
        cell.call(f"aten::{last}", 2_000, dims=row)
        cell.call("aten::maximum", 2_000, dims=row)
    fixed.call("aten::cummax", 511 * 260)
    for _ in range(2):
        fixed.call("aten::sub", 8_000)
    for one in (cell, fixed):
        one.wait()
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    assert change.basis == basis and holds(change, fixed)


@pytest.mark.parametrize(
    "source",
    [
        SUMS.format(step="acc = acc + x[i] * x[i - 1]"),
        "i = 1\nwhile i < len(x):\n    top = torch.maximum(top, x[i])\n"
        "    fall = fall + (top - x[i])\n    i += 1\n",
        "def worst(x, low):\n    for row in x:\n        low = low.minimum(row)\n"
        "        seen.append(row - low)\n    return low\nlow = worst(x, low)\n",
    ],
)
def test_a_scan_is_named_where_no_edit_of_it_is_sure(
    tmp_path: Path, source: str
) -> None:
    name = next(one for one in ("maximum", "minimum", "") if one in source) or "add"
    cell = turns(source, f"aten::{name}")
    change = changes_of(scan, cell.evidence(tmp_path))["scan"]
    assert not change.code and change.basis == "predicted"


def solves(
    source: str | None, between: str = "", count: int = 40, name: str = "solve"
) -> Cell:
    cell = Cell(source)
    for _ in range(count):
        cell.views("aten::select", "aten::select")
        if between:
            cell.call(between, 3_000, dims=([48, 48], [48, 48]))
        with cell.operator(f"aten::linalg_{name}"):
            dims = ([48, 48], [48, 1])
            cell.call(f"aten::_linalg_{name}_ex", 8_000, 9_000, 9_000, dims=dims)
        cell.call("aten::copy_", 2_000, dims=([48, 1], [48, 1], []))
    cell.wait()
    return cell


SYSTEMS = (
    "A = torch.randn(40, 6, 6) + 9 * torch.eye(6); b = torch.randn(40, 6, 1); "
    "y = torch.empty(40, 6, 1)"
)


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(40):\n    y[i] = torch.linalg.solve(A[i], b[i])\n",
        "y = torch.stack([torch.linalg.inv(one) for one in A])",
        "y = []\nfor one in A:\n    y.append(torch.inverse(one))\n",
        None,
    ],
)
def test_matrices_are_given_at_once(tmp_path: Path, source: str | None) -> None:
    cell, fixed = solves(source), Cell()
    fixed.call("aten::linalg_solve", 60_000)
    fixed.wait()
    change = changes_of(matrix_loop, cell.evidence(tmp_path))["batch-linalg"]
    assert change.basis in ("not below", "unknown")
    assert (change.low_ns or 0) <= fixed.window_ns
    assert source is None or agrees(change, source, SYSTEMS, "y")


@pytest.mark.parametrize(
    "cell",
    [
        solves("for i in range(40):\n    x = x - torch.linalg.solve(J(x), x)\n"),
        # nobody tells that they are independent
        solves(None, between="aten::mm"),
        # a batch of larger ones is factored one by one, too
        solves("y = [torch.linalg.eigvalsh(one) for one in A]", name="eigvalsh"),
        solves("for i in range(4):\n    y[i] = torch.linalg.inv(A[i])\n", count=4),
    ],
)
def test_systems_that_need_each_other_are_let_be(tmp_path: Path, cell: Cell) -> None:
    assert not changes_of(matrix_loop, cell.evidence(tmp_path))
